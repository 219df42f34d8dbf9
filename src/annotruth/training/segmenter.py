"""Segmenter: learn to segment from raters who disagree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from monai.inferers import sliding_window_inference
from sklearn.utils.validation import check_is_fitted
from torch import nn

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion.gold import Gold
from annotruth.methods import METHODS, DataSpec, Method, Task, make_method, methods_for
from annotruth.methods.rater_features import RaterCode
from annotruth.training.counting import count_items, mean_matrices, resampled_intervals
from annotruth.training.datasets import MaskDataset, Standard, training_patch
from annotruth.training.diagnostics import warn_doubts, warn_small
from annotruth.training.estimator import Estimator
from annotruth.training.expected import ExpectedAnnotator
from annotruth.training.known import with_known
from annotruth.training.raters import RaterFacts
from annotruth.training.weighing import RaterFusionMixin
from annotruth.validation import finite_image

BATCH_PIXELS = 2**20
"""A batch holds at most this many pixels or voxels, unless batch_size says otherwise; see also below."""
BATCH_ITEMS, FEWEST_STEPS = 16, 16
"""It holds at most so many items, and so few that an epoch has this many steps: small data sets need steps, too."""


class Segmenter(RaterFusionMixin, Estimator):
    """Learns the true segmentation, and every rater's way of erring, from the raters' masks.

    Parameters
    ----------
    method : how to learn; ``annotruth.methods.METHODS`` lists the names
    network : your own ``nn.Module`` from images (batch, channels, *spatial) to class scores (batch, classes, *spatial);
        None = a small U-Net
    max_epochs : passes over the training items at most
    batch_size : items per step; None = by the images' size
    learning_rate : its peak; it rises at first and then falls to nothing
    patience : epochs without a better likelihood of held-out *noisy* labels after which training stops
    validation : share of the items held out for that; 0 = none, train to the last epoch
    patch_size : train on random patches of this size, one number per axis; None = whole images, patches if large
    augment : mirror, turn, scale and shift images and masks together at random, and change contrast and brightness
    seed : the same seed gives the same model, bit for bit, on a CPU
    accelerator : "auto", "cpu", "gpu" …, as Lightning names them
    devices : how many of them train together, a process each, on each of the ``nodes`` (machines); the items of a
        batch are shared out between them
    strategy : how they work together: "ddp", which "auto" is, too
    progress : whether to show a progress bar
    **options : the method's own options, such as ``trace_weight=0.01`` of pixel-cm

    Attributes
    ----------
    classes_, raters_ : names, in order
    annotators_ : what was learnt of each rater, by name: ``annotators_["rater_1"].confusion``
    history_ : losses by epoch
    warnings_ : why the result may be wrong, in words; empty if nothing speaks against it
    settings_ : everything that determined this model

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

    def __init__(
        self,
        method: str = "pixel-cm",
        network: nn.Module | None = None,
        max_epochs: int = 30,
        batch_size: int | None = None,
        learning_rate: float = 0.01,
        patience: int = 10,
        validation: float = 0.15,
        patch_size: Sequence[int] | None = None,
        augment: bool = False,
        seed: int = 0,
        accelerator: str = "auto",
        devices: int = 1,
        nodes: int = 1,
        strategy: str = "auto",
        progress: bool = True,
        **options: Any,
    ) -> None:
        self.method = method
        self.network = network
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
        self.progress = progress
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
        if truth is not None:
            annotations = with_known(annotations, truth)
        method = self._checked(annotations, truth is not None)
        self.classes_, self.raters_ = annotations.classes, annotations.raters
        self.pixel_values_ = annotations.pixel_values
        self._patch = training_patch(annotations, self.patch_size)
        train, held_out = self._split(annotations)
        self._standard = Standard.of(train)
        self._rater_code = RaterCode.of(annotations, getattr(method, "rater_features", ()))
        self._shape = DataSpec(
            len(self._standard.mean), len(self.raters_), len(self.classes_), len(train.shape(0)),
            rater_columns=self._rater_code.columns,
        )  # fmt: skip
        cases, validation = (
            None if part is None else MaskDataset(
                part, method, self._standard, self._patch, self.augment and part is train, self.seed, truth is not None
            )
            for part in (train, held_out)
        )  # fmt: skip
        assert cases is not None
        self._build(method)
        method.prepare(self._parts, train)
        warn_small(
            self._parts, annotations.items, [annotations.shape(i) for i in range(len(annotations))], stacklevel=3
        )
        size = train.shape(0) if self._patch is None else tuple(min(n, p) for n, p in zip(train.shape(0), self._patch))
        self._check_network((self._shape.channels, *size), (self._shape.classes, *size))
        self._train(
            method, cases, validation, int(self.batch_size or _batch_size(train, self._patch)), run_folder, resume
        )
        every_rater = Method()  # a method may fuse the masks it learns from; here all of them count
        self._learn_annotators(method, MaskDataset(train, every_rater, self._standard))
        return self

    def _checked(self, annotations: Annotations, with_truth: bool = False) -> Method:
        if annotations.kind != "masks":
            raise InputError("Segmenter learns from masks; these annotations are a label table.")
        if not annotations.has_images:
            raise InputError("Segmenter needs the images; give them with images=, or put them into images/.")
        method = self._checked_method()
        if with_truth and not method.learns_from_truth:
            can = ", ".join(name for name in methods_for("masks") if METHODS[name].learns_from_truth)
            raise InputError(f"The method {self.method} does not learn from true masks. Those that do: {can}.")
        if not with_truth:  # what labels lack, known masks may tell
            method.check(annotations)
        training_patch(annotations, self.patch_size)
        return method

    def _learn_annotators(self, method: Method, cases: MaskDataset) -> None:
        counts = count_items(method, self._parts, cases, self._schedule.batch_size, self._patch)
        labelled = (counts.met.sum(axis=(2, 3)) > 0).sum(axis=0)
        bounds = resampled_intervals(counts.met, self.seed)
        self._set_annotators(RaterFacts.holding(counts.confusion(), *bounds, labelled=labelled))
        self.warnings_ = warn_doubts(method, counts, self.raters_, self.classes_, stacklevel=4)

    @property
    def complement_(self) -> np.ndarray | None:
        """M of coarse-cm (classes, classes): which class a pixel is said not to be, by what it is taken for.

        None where the method has none.
        """
        complement = getattr(self._parts, "complement", None)
        return None if complement is None else complement().exp().detach().cpu().numpy()

    @property
    def dims_(self) -> int:
        """How many spatial axes the images have."""
        return self._shape.dims

    # -- using --------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def predict_proba(
        self,
        images: np.ndarray | Sequence[np.ndarray],
        *,
        recurrence: int | None = None,
        confidences: Mapping[str, float] | Sequence[float] | None = None,
    ) -> Any:
        """Probabilities of the true class: (items, classes, *spatial) float32 for images (items, channels, *spatial).

        A list of images of different sizes gives a list.

        Parameters
        ----------
        recurrence : of ``mrprism``, the estimate after this recurrence, counted from 0; None = the last
        confidences : of ``mrprism`` and ``mrnet``, how far to trust raters: ``{"rater_1": 2}``, the others 1, or one
            number for each
        """
        check_is_fitted(self, "annotators_")
        how = make_method(self.method, self.options, self.task).asked(self.raters_, recurrence, confidences)
        probabilities = [self._predict_one(image, position, how) for position, image in enumerate(images)]
        names = [f"image {position}" for position in range(len(images))]
        warn_small(self._parts, names, [one.shape[1:] for one in probabilities], stacklevel=4)
        return np.stack(probabilities) if len({p.shape for p in probabilities}) == 1 else probabilities

    def predict(self, images: np.ndarray | Sequence[np.ndarray], **asked: Any) -> Any:
        """The most likely class at every pixel: (items, *spatial) uint8; arguments are those of ``predict_proba``."""
        probabilities = self.predict_proba(images, **asked)
        if isinstance(probabilities, np.ndarray):
            return probabilities.argmax(axis=1).astype(np.uint8)
        return [p.argmax(axis=0).astype(np.uint8) for p in probabilities]

    @torch.no_grad()
    def sample(self, images: np.ndarray | Sequence[np.ndarray], n: int, seed: int = 0) -> Any:
        """What n people might draw on each image: (n, items, *spatial) uint8.

        Where the method learns how each rater errs, a drawing is what one of them would draw, picked at random, with
        the variety that the probabilities of that rater's labels leave (``separate``: what one of its networks draws).
        ``prob-unet`` draws from its latent. Other methods know of no variety, and give their one prediction n times.

        Each drawing is one person's: chance decides once per drawing and image, never pixel by pixel, and stays the
        same for all windows of an image that is predicted by patches.

        Images of different sizes give a list, (n, *spatial) for each. The same seed gives the same drawings.
        """
        check_is_fitted(self, "annotators_")
        if n < 1:
            raise InputError(f"n is how many drawings to make of each image, at least 1, not {n}.")
        drawings = [self._sample_one(image, position, n, seed) for position, image in enumerate(images)]
        return np.stack(drawings, axis=1) if len({d.shape for d in drawings}) == 1 else drawings

    @torch.no_grad()
    def confusion_maps(self, image: np.ndarray) -> np.ndarray | None:
        """Every rater's matrix at every pixel of one image: (raters, classes, classes, *spatial).

        None where the method gives each rater only one matrix.
        """
        method = make_method(self.method, self.options, self.task)
        if not method.learns_annotators:
            return None
        tensor = self._standardised(image, "The image")
        maps = method.confusion(self._parts, tensor[None]).dense()
        return maps[0].numpy() if maps.ndim == 4 + self._shape.dims else None

    @torch.no_grad()
    def confusion(self, images: np.ndarray | Sequence[np.ndarray]) -> np.ndarray:
        """Every rater's confusion on each of these images: (items, raters, classes, classes).

        Pixel matrices are averaged with the estimated truth as weight; where the method has one matrix per rater, every
        image gets that one.
        """
        method = make_method(self.method, self.options, self.task)
        if not method.learns_annotators:
            return np.broadcast_to(self.confusion_, (len(images), *self.confusion_.shape)).copy()
        tensors = (self._standardised(image, f"Image {position}") for position, image in enumerate(images))
        sums = [mean_matrices(partial(method.confusion, self._parts), self._parts, t, self._patch) for t in tensors]
        return np.stack([rows / np.maximum(weights, 1e-9)[:, None] for rows, weights in sums])

    def expected_annotator(self, features: Mapping[str, Any]) -> ExpectedAnnotator:
        """A rater who has labelled nothing, but of whom the features that were trained on are known.

        Needs ``rater_features``: ``Segmenter("pixel-cm", rater_features=("years", "site"))``.
        """
        check_is_fitted(self, "annotators_")
        if self._rater_code.columns == 0:
            raise InputError("The model was trained without rater_features, so that it knows nothing of other raters.")
        self._rater_code.encode(features)  # refuses what the model cannot know
        return ExpectedAnnotator(dict(features), self)

    def _predict_one(self, image: np.ndarray, position: int, how: Mapping[str, Any]) -> np.ndarray:
        tensor = self._standardised(image, f"Image {position}")[None]
        scores = self._by_windows(tensor, lambda part: self._parts.log_truth(part, **how).exp())
        return (scores / scores.sum(dim=1, keepdim=True))[0].numpy()

    def _sample_one(self, image: np.ndarray, position: int, n: int, seed: int) -> np.ndarray:
        tensor = self._standardised(image, f"Image {position}")[None]
        method = make_method(self.method, self.options, self.task)

        def draw(part: torch.Tensor) -> torch.Tensor:
            generator = torch.Generator().manual_seed(hash((seed, position)) % 2**63)  # the same in every window
            return method.drawings(self._parts, part, n, generator, self._shape).transpose(0, 1).flatten(1, 2)

        drawn = self._by_windows(tensor, draw)[0].unflatten(0, (n, -1))
        return drawn.argmax(dim=1).to(torch.uint8).numpy()

    def _by_windows(self, image: torch.Tensor, predict: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        """What is predicted for an image (1, channels, *spatial); one larger than a patch goes window by window."""
        if self._patch is None or all(n <= p for n, p in zip(image.shape[2:], self._patch)):
            return predict(image)
        return sliding_window_inference(
            image, self._patch, sw_batch_size=4, predictor=predict, overlap=0.5, mode="gaussian"
        )

    def _standardised(self, image: np.ndarray, where: str) -> torch.Tensor:
        image = finite_image(image, where)
        wanted = self._shape.dims + 1
        if image.ndim != wanted or len(image) != self._shape.channels:
            raise InputError(
                f"{where} has shape {image.shape}; the model needs (channels, *spatial) with {self._shape.channels} "
                f"channel(s) and {self._shape.dims} spatial axes."
            )
        return self._standard(image)

    # -- keeping ------------------------------------------------------------------------------------------------

    def _used_settings(self) -> dict[str, Any]:
        return {"patch_size": self._patch, "network": "own" if self.network is not None else "U-Net"}

    def _facts(self) -> dict[str, Any]:
        return {"pixel_values": self.pixel_values_, "patch": self._patch, "rater_code": vars(self._rater_code)}

    def _take_facts(self, facts: dict[str, Any]) -> None:
        values = facts["pixel_values"]
        self.pixel_values_ = None if values is None else {int(number): value for number, value in values.items()}
        self._patch = None if facts["patch"] is None else tuple(facts["patch"])
        self._rater_code = RaterCode(**facts["rater_code"])


def _batch_size(annotations: Annotations, patch: tuple[int, ...] | None) -> int:
    largest = max(int(np.prod(annotations.shape(index))) for index in range(len(annotations)))
    pixels = min(largest, int(np.prod(patch))) if patch is not None else largest
    return max(1, min(BATCH_PIXELS // pixels, BATCH_ITEMS, len(annotations) // FEWEST_STEPS))
