"""Segmenter: learn to segment from raters who disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import nn

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion.gold import Gold
from annotruth.methods import METHODS, DataSpec, Task, methods_for
from annotruth.methods.protocols import LearnsFromTruth, TakesRaterFeatures
from annotruth.methods.rater_features import RaterCode
from annotruth.nn.monai_networks import is_monai, monai_network
from annotruth.nn.plan import OWN
from annotruth.training.auto import AUTO, fit_chosen
from annotruth.training.datasets import MaskDataset, Progress
from annotruth.training.diagnostics import warn_of_masks, warn_of_small_images
from annotruth.training.estimator import Data, Estimator
from annotruth.training.expected import ExpectedAnnotator
from annotruth.training.folds import FOLDS
from annotruth.training.inputs import with_known_truth
from annotruth.training.plan import FEWEST_STEPS, Plan, complete_plan, image_shapes, plan_sizes
from annotruth.training.prediction import PredictionMixin
from annotruth.training.rater_counts import count_items, resampled_intervals
from annotruth.training.rater_fusion import RaterFusionMixin
from annotruth.training.raters import RaterFacts
from annotruth.training.resample import grid_sizes

EPOCHS = 30
"""Passes over the items where nobody says how many; of few items more, so that there are as many steps as with enough
of them. With 14 pictures (kidneys, seeds 10 to 12, taught the vote), Dice was 0.921 after 480 steps, 0.930 after 1,000
and 0.949 after 1,700."""


class Segmenter(PredictionMixin, RaterFusionMixin, Estimator):
    """Learns the true segmentation, and every rater's way of erring, from the raters' masks.

    Parameters
    ----------
    method : how to learn; ``annotruth.methods.methods_for("masks")`` lists the names; "auto"
        compares some on these data first (``annotruth.compare``), and takes the recommended one
    network : "small" (which None is, too), "standard" or "residual": a U-Net of 16 or 32 channels, planned by the
        images' size; "monai:<ClassName>", such as "monai:SegResNet"; or your own ``nn.Module`` from images (batch,
        channels, *spatial) to class logits (batch, classes, *spatial)
    plan : a plan that ``annotruth plan`` wrote and you changed: its file, or a :class:`~annotruth.training.plan.Plan`;
        None = one by the images' size and spacing
    deep_supervision : whether coarse stages of the network give class scores, too
    max_epochs : passes over the training items at most; None = 30, more where these would make fewer than 64
        steps each
    batch_size : items per step; None = by the images' size
    learning_rate : its peak; it rises at first and then falls to nothing
    patience : epochs without a better likelihood of held-out *noisy* labels after which training stops
    validation : share of the items held out for that; 0 = none, train to the last epoch
    patch_size : train on random patches of this size, one number per axis; None = whole images, patches if large
    augment : mirror, turn, scale and shift images and masks together at random, and change contrast and brightness;
        mirror images in prediction, too
    seed : the same seed gives the same model, bit for bit, on a CPU
    accelerator : "auto", "cpu", "gpu" …, as Lightning names them
    devices : how many of them train together, a process each, on each of the ``nodes`` (machines); the items of a
        batch are shared out between them
    strategy : how they work together: "ddp", which "auto" is, too
    precision : "mixed" = annotruth's own networks compute in bfloat16 while they are trained, which takes half the time
        on larger images; "full" = all in 32 bits; "auto" = mixed on devices that have instructions for it
    progress : whether to show a progress bar
    fold : instead of a share at random, hold out this one of the folds, counted from 0
    folds : into how many parts items are split, whole groups together, the same for every seed
    **options : the method's own options, such as ``trace_weight=0.01`` of pixel-cm

    Attributes
    ----------
    classes_, raters_ : names, in order
    annotators_ : what was learnt of each rater, by name: ``annotators_["rater_1"].confusion``
    history_ : losses by epoch
    warnings_ : why the result may be wrong, in words; empty if nothing speaks against it
    settings_ : everything that determined this model
    plan_ : how images are treated, and the network's stages
    method_ : the method with its options
    module_ : the trained networks: ``module_.truth`` and ``module_.annotators``

    Examples
    --------
    >>> import annotruth as at
    >>> from annotruth.simulate import noisy_digits, simulate_masks
    >>> images, truth, _ = noisy_digits(40)
    >>> ann = simulate_masks(truth).annotations(images=images)
    >>> model = at.Segmenter(method="pixel-cm", max_epochs=1, progress=False).fit(ann)
    >>> model.predict(images[:2]).shape
    (2, 28, 28)
    >>> model.annotators_["blank"].confusion.shape
    (2, 2)
    """

    task: ClassVar[Task] = "masks"
    first_format: ClassVar[int] = 2

    def __init__(
        self,
        method: str = "pixel-cm",
        network: str | nn.Module | None = None,
        plan: Plan | Mapping[str, Any] | str | Path | None = None,
        deep_supervision: bool = False,
        max_epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float = 0.01,
        patience: int = 10,
        validation: float = 0.15,
        patch_size: Sequence[int] | None = None,
        augment: bool = True,
        seed: int = 0,
        accelerator: str = "auto",
        devices: int = 1,
        nodes: int = 1,
        strategy: str = "auto",
        precision: str = "auto",
        progress: bool = True,
        fold: int | None = None,
        folds: int = FOLDS,
        **options: Any,
    ) -> None:
        self.method = method
        self.network = network
        self.plan = plan
        self.deep_supervision = deep_supervision
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.patience = patience
        self.validation = validation
        self.patch_size = patch_size
        self.augment = augment
        self.seed = seed
        self.accelerator = accelerator
        self.devices = devices
        self.nodes = nodes
        self.strategy = strategy
        self.precision = precision
        self.progress = progress
        self.fold = fold
        self.folds = folds
        self.options = options

    # -- learning -----------------------------------------------------------------------------------------------

    def fit(
        self,
        annotations: Annotations,
        *,
        truth: Gold = None,
        run_folder: str | Path | None = None,
        resume: bool = False,
    ) -> Segmenter:
        """Learn from masks and images.

        Parameters
        ----------
        truth : true masks of some items, to learn from beside the raters' (methods that can, such as coarse-cm): labels
            (items, *spatial), an array or None per item, or arrays by item name, 255 = unknown; "truth" = those that
            the annotations carry
        run_folder : where checkpoints and logs (CSV, TensorBoard) go; None = nowhere
        resume : go on where a training in ``run_folder`` was cut off
        """
        if self.method == AUTO and truth is None:
            return fit_chosen(self, (annotations,), annotations, run_folder, resume)
        return self._learn(self._read(self._check(annotations, truth)), run_folder, resume)

    def _check(self, annotations: Annotations, truth: Gold = None) -> Annotations:
        self._with_truth = truth is not None
        if truth is not None:
            annotations = with_known_truth(annotations, truth)
        if annotations.kind != "masks":
            raise InputError("Segmenter learns from masks; these annotations are a label table.")
        if not annotations.has_images:
            raise InputError("Segmenter needs the images; give them with images=, or put them into images/.")
        self.method_ = self._checked_method()
        if not self._with_truth:  # what labels lack, known masks may tell
            self.method_.check(annotations)
        elif not isinstance(self.method_, LearnsFromTruth):
            can = [name for name in methods_for("masks") if issubclass(METHODS[name, "masks"], LearnsFromTruth)]
            raise InputError(
                f"The method {self.method} does not learn from true masks. Those that do: {', '.join(can)}."
            )
        self.plan_ = self._planned(annotations)
        return annotations

    def _planned(self, annotations: Annotations) -> Plan:
        """The plan that was given, or one by the images' sizes, to be completed when they are read."""
        if self.plan is None:
            name = OWN if isinstance(self.network, nn.Module) else self.network or "small"
            return plan_sizes(annotations, name, self.patch_size, self.batch_size, self.deep_supervision)
        if self.network is not None or self.deep_supervision:
            what = "deep_supervision" if self.network is None else "network"
            raise InputError(f"A plan says what the network is: leave out {what}, or change it in the plan.")
        plan, axes = Plan.read(self.plan), len(image_shapes(annotations)[0])
        if plan.network.dims != axes:
            raise InputError(f"The plan is for images of {plan.network.dims} axes, but these have {axes}.")
        grid_sizes(annotations, plan.spacing)  # refuses images of which no spacing is known, where one is needed
        patch = plan.patch_size if self.patch_size is None else tuple(self.patch_size)
        return replace(plan, patch_size=patch, batch_size=self.batch_size or plan.batch_size)

    def _read(self, annotations: Annotations, tell: Progress | None = None) -> Data[MaskDataset]:
        self.classes_, self.raters_ = annotations.classes, annotations.raters
        self.pixel_values_ = annotations.pixel_values
        to_learn, to_judge = self._split(annotations)

        def items(part: Annotations, augment: bool) -> MaskDataset:
            return MaskDataset(
                part, self.method_, self.plan_.patch_size, augment, self.seed, self._with_truth, tell,
                foreground=self.plan_.foreground, repeats=self.plan_.patches, spacing=self.plan_.spacing,
            )  # fmt: skip

        train = items(to_learn, self.augment)
        held_out = None if to_judge is None else items(to_judge, augment=False)
        if self.plan is None:
            seen = chain(train.fingerprints(), () if held_out is None else held_out.fingerprints())
            self.plan_ = complete_plan(self.plan_, seen)
        train.mirror = self.plan_.mirror
        self._standard = train.measure(self.plan_.clip)
        train.standardise(self._standard)
        if held_out is not None:
            held_out.standardise(self._standard)
        if is_monai(self.plan_.network.name):
            with torch.random.fork_rng():
                self._own_network()  # one that does not go with these images is refused before training
        return Data(train, held_out, annotations)

    def _own_network(self) -> nn.Module | None:
        name = self.plan_.network.name
        if not is_monai(name):
            return super()._own_network()
        return monai_network(
            name, dims=self.plan_.network.dims, in_channels=len(self._standard.mean), out_channels=len(self.classes_),
            size=self.plan_.patch_size,
        )  # fmt: skip

    def _learn(self, data: Data[MaskDataset], run_folder: str | Path | None, resume: bool) -> Segmenter:
        train, annotations = data.train.annotations, data.annotations
        features = self.method_.rater_features if isinstance(self.method_, TakesRaterFeatures) else ()
        self._rater_code = RaterCode.of(annotations, features) if features else RaterCode({}, {})
        self._spec = DataSpec(
            len(self._standard.mean), len(self.raters_), len(self.classes_), self.plan_.network.dims,
            rater_columns=self._rater_code.columns if features else 0, network=self.plan_.network,
        )  # fmt: skip
        self._build(train)
        sizes, first = grid_sizes(annotations, self.plan_.spacing), data.train.shape(0)
        warn_of_small_images(self.module_, annotations.items, sizes, stacklevel=4)
        size = tuple(min(lengths) for lengths in zip(first, self.plan_.patch_size or first))
        self._check_network((self._spec.channels, *size), (self._spec.classes, *size))
        self._train(data.train, data.held_out, self.plan_.batch_size, run_folder, resume)
        self._learn_annotators(data.train.every_rater())
        return self

    def _usual_epochs(self, items: int, batch_size: int) -> int:
        steps = -(-items * self.plan_.patches // batch_size)
        return max(EPOCHS, -(-EPOCHS * FEWEST_STEPS // steps))

    def _learn_annotators(self, items: MaskDataset) -> None:
        """Count all raters' masks against the estimated truth, whatever the method made of them to learn from."""
        counts = count_items(self.method_, self.module_, items, self._schedule.batch_size, self.plan_.patch_size)
        labelled = (counts.met.sum(axis=(2, 3)) > 0).sum(axis=0)
        bounds = resampled_intervals(counts.met, self.seed)
        self._set_annotators(RaterFacts.holding(counts.confusion(), *bounds, labelled=labelled))
        self.warnings_ = warn_of_masks(self.method_, self.module_, counts, self.raters_, self.classes_, stacklevel=5)

    def make_plan(self, annotations: Annotations, tell: Progress | None = None) -> Plan:
        """The plan by which these annotations would be learnt from, which nothing is trained for.

        ``tell`` is told how many items are read, of how many.
        """
        self._read(self._check(annotations), tell)
        return self.plan_

    @property
    def complement_(self) -> np.ndarray | None:
        """M of coarse-cm (classes, classes): which class a pixel is said not to be, by what it is taken for.

        None where the method has none.
        """
        complement = getattr(self.module_, "complement", None)
        return None if complement is None else complement().exp().detach().cpu().numpy()

    @property
    def dims_(self) -> int:
        """How many spatial axes the images have."""
        return self._spec.dims

    # -- using --------------------------------------------------------------------------------------------------

    def expected_annotator(self, features: Mapping[str, Any]) -> ExpectedAnnotator:
        """A rater who has labelled nothing, but of whom the features that were trained on are known.

        Needs ``rater_features``: ``Segmenter("pixel-cm", rater_features=("years", "site"))``.
        """
        check_is_fitted(self, "annotators_")
        if self._rater_code.columns == 0:
            raise InputError("The model was trained without rater_features, so that it knows nothing of other raters.")
        self._rater_code.encode(features)  # refuses what the model cannot know
        return ExpectedAnnotator(dict(features), self)

    # -- keeping ------------------------------------------------------------------------------------------------

    def _used_settings(self) -> dict[str, Any]:
        plan = self.plan_
        return {"patch_size": plan.patch_size, "network": plan.network.name, "plan": asdict(plan)}

    def _facts(self) -> dict[str, Any]:
        return {"pixel_values": self.pixel_values_, "plan": asdict(self.plan_), "rater_code": vars(self._rater_code)}

    def _take_facts(self, facts: dict[str, Any]) -> None:
        values = facts["pixel_values"]
        self.pixel_values_ = None if values is None else {int(number): value for number, value in values.items()}
        self.plan_ = Plan.read(facts["plan"])
        self._rater_code = RaterCode(**facts["rater_code"])
