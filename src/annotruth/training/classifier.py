"""Classifier: learn to classify from raters who disagree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion.gold import Gold
from annotruth.methods import DataSpec
from annotruth.nn.classifiers import classifier_network, default_network
from annotruth.training.auto import AUTO, fit_chosen
from annotruth.training.datasets import LabelTableDataset, Progress, read_images
from annotruth.training.diagnostics import warn_of_answers
from annotruth.training.estimator import Data, Estimator
from annotruth.training.folds import FOLDS
from annotruth.training.inputs import to_annotations
from annotruth.training.rater_counts import BLOCK, MOST_KEPT, AnswerCounts
from annotruth.training.raters import RaterFacts
from annotruth.training.recipes import Recipe, recipe_of
from annotruth.validation import MISSING_LABEL, finite_image


class Classifier(ClassifierMixin, Estimator):
    """Learns the true classes, and every rater's way of erring, from the raters' answers.

    Parameters
    ----------
    method : how to learn; ``annotruth.methods.methods_for("labels")`` lists the names; "auto"
        compares some on these data first (``annotruth.compare``), and takes the recommended one
    network : for images "resnet", planned by their size, "cnn", a small one, or a class of MONAI's,
        "monai:DenseNet121"; for features "mlp" or "linear"; or your own ``nn.Module`` from images
        (batch, channels, *spatial) or features (batch, features) to class logits (batch, classes); None = "resnet" or
        "mlp"
    max_epochs : passes over the training items at most; None = 30, or as many as make 600 steps; fewer for "resnet" and
        MONAI's where items are many: as many as show 200,000 of them, at least 16
    batch_size : items per step; None = 50; for "resnet" and MONAI's 128, or so few that an epoch has 32 steps
    learning_rate : its peak; it rises at first and then falls to nothing. None = what suits the network: 0.01 for
        "resnet", 0.003 for "cnn", 0.02 for "linear", 0.001 for others
    augment : show images shifted a little and in other contrast and brightness on every pass, never mirrored or turned;
        None = where there are images, and not features
    patience : epochs without a better likelihood of held-out *noisy* labels after which training stops
    validation : share of the items held out for that; 0 = none, train to the last epoch
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
    **options : the method's own options, such as ``trace_weight=0.01`` of global-cm

    Attributes
    ----------
    classes_ : (classes,) labels as they were given
    raters_ : names, in order
    annotators_ : what was learnt of each rater, by name: ``annotators_["rater_1"].confusion``
    confusion_ : (raters, classes, classes), [true, observed], rows sum to 1
    skill_ : (raters,) mean diagonal of ``confusion_``
    history_ : losses by epoch
    warnings_ : why the result may be wrong, in words; empty if nothing speaks against it
    settings_ : everything that determined this model
    method_ : the method with its options
    module_ : the trained networks: ``module_.truth`` and ``module_.annotators``

    Examples
    --------
    >>> import annotruth as at
    >>> from annotruth.simulate import label_group, simulate_labels
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 3, 600)
    >>> features = np.eye(3)[truth] + rng.normal(0, 0.2, (600, 3))
    >>> answers = simulate_labels(truth, label_group("pairwise-flipper", 5, 3, skill=0.7), keep=1).answers
    >>> model = at.Classifier("global-cm", network="linear", progress=False).fit(features, answers)
    >>> model.score(features, truth) > 0.95
    True
    """

    task = "labels"

    def __init__(
        self,
        method: str = "global-cm",
        network: str | nn.Module | None = None,
        max_epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        augment: bool | None = None,
        patience: int = 10,
        validation: float = 0.1,
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
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.augment = augment
        self.patience = patience
        self.validation = validation
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
        self, X: Any, answers: Any = None, *, run_folder: str | Path | None = None, resume: bool = False
    ) -> Classifier:
        """Learn from answers and images or features.

        Parameters
        ----------
        X : annotations of a label table with images or features; or features (items, features); or images (items,
            channels, *spatial)
        answers : where X is an array: labels (items, raters), -1 = not answered; labels (items,), as of one rater;
            annotations without images; or a long table with the columns item, rater, label, whose items are rows of X
            by their index, counted from 0 where X has none
        run_folder : where checkpoints and logs (CSV, TensorBoard) go; None = nowhere
        resume : go on where a training in ``run_folder`` was cut off
        """
        annotations, self.classes_ = self._take_in(X, answers)
        if self.method == AUTO:
            return fit_chosen(self, (X, answers), annotations, run_folder, resume)
        return self._learn(self._read(self._check(annotations)), run_folder, resume)

    def _check(self, annotations: Annotations, truth: Gold = None) -> Annotations:
        if truth is not None:
            raise InputError("Classifier does not learn from known truth beside the answers.")
        if annotations.kind != "labels":
            raise InputError("Classifier learns from a label table; these annotations are masks: use Segmenter.")
        if not annotations.has_images:
            raise InputError("Classifier needs images or features: give them with images=, or as an array beside them.")
        if len(annotations.classes) < 2:
            raise InputError(f"There is only one class, {annotations.classes[0]}, so there is nothing to tell apart.")
        self.method_ = self._checked_method()
        self.method_.check(annotations)
        return annotations

    def _read(self, annotations: Annotations, tell: Progress | None = None) -> Data[LabelTableDataset]:
        if not hasattr(self, "classes_"):
            self.classes_ = np.array(annotations.classes)
        self.raters_ = annotations.raters
        annotations = read_images(annotations, tell)
        to_learn, to_judge = self._split(self._label_targets(annotations))
        size = to_learn.item_image(0).shape
        self._spec = DataSpec(size[0], len(annotations.raters), len(annotations.classes), len(size) - 1, self.task)
        self._size = size[1:]
        self._network = "own" if isinstance(self.network, nn.Module) else self.network or default_network(len(size) - 1)
        train = LabelTableDataset(to_learn, self._augments(), self.seed)
        held_out = None if to_judge is None else LabelTableDataset(to_judge)
        self._standard = train.measure()
        with torch.random.fork_rng():
            self._own_network()  # a name that is not known, or does not go with these items, is refused before training
        train.standardise(self._standard)
        if held_out is not None:
            held_out.standardise(self._standard)
        return Data(train, held_out, annotations)

    def _learn(self, data: Data[LabelTableDataset], run_folder: str | Path | None, resume: bool) -> Classifier:
        self._build(data.annotations)
        self._check_network(data.train.annotations.item_image(0).shape, (self._spec.classes,))
        batch_size = int(self.batch_size or self._recipe.batch_for(len(data.train)))
        self._train(data.train, data.held_out, batch_size, run_folder, resume)
        self._learn_annotators(data.annotations)
        return self

    def _take_in(self, X: Any, answers: Any) -> tuple[Annotations, np.ndarray]:
        """What was given, as annotations, and the classes' labels."""
        if isinstance(X, Annotations):
            if answers is not None:
                raise InputError("Annotations bring their answers along; give either these or an array with answers.")
            return X, np.array(X.classes)
        if answers is None:
            raise InputError("requires y to be passed, but the target y is None: give the raters' answers beside X.")
        array = self._array(X, reset=True)
        named = isinstance(X, pd.DataFrame) and isinstance(answers, pd.DataFrame)
        return to_annotations(array, [str(name) for name in (X.index if named else range(len(array)))], answers)

    def _array(self, X: Any, reset: bool = False) -> np.ndarray:
        """Features (items, features), checked as scikit-learn does, or images (items, channels, *spatial)."""
        if np.ndim(X) > 2:
            return np.asarray(X)
        return validate_data(self, X, reset=reset, dtype=np.float32, ensure_all_finite=False)

    def _label_targets(self, annotations: Annotations) -> Annotations:
        """The label table that the method learns from, without the items nobody says anything of."""
        answers = self.method_.label_targets(annotations)
        taught = Annotations(
            kind="labels", items=annotations.items, classes=annotations.classes, answers=answers,
            raters=annotations.raters if answers is annotations.answers else ["fused"],
            images=annotations._images, groups=annotations.groups,
        )  # fmt: skip
        answered = np.unique(answers.item)
        if len(answered) == 0:
            raise InputError("There is no answer to learn from: nobody labelled any item.")
        return taught if len(answered) == len(annotations) else taught.take(answered)

    def _own_network(self) -> nn.Module | None:
        """A fresh network of the name that was asked for, or of the default's, or a copy of the user's own."""
        if isinstance(self.network, nn.Module):
            return super()._own_network()
        spec = self._spec
        return classifier_network(self._network, spec.channels, spec.classes, spec.dims, self._size)

    def _augments(self) -> bool:
        if self.augment and not self._spec.dims:
            raise InputError("augment changes images; feature vectors stay as they are: leave it out.")
        return bool(self._spec.dims) if self.augment is None else bool(self.augment)

    @property
    def _recipe(self) -> Recipe:
        return recipe_of(self._network)

    def _usual_epochs(self, items: int, batch_size: int) -> int:
        return self._recipe.epochs_for(items, batch_size)

    def _rate(self) -> float:
        return self._recipe.learning_rate if self.learning_rate is None else float(self.learning_rate)

    def _learn_annotators(self, annotations: Annotations) -> None:
        confusion, skill = self._learnt_matrices() if self.method_.learns_annotators else (None, None)
        counts = AnswerCounts.of(
            annotations, lambda items: self._probabilities(annotations.item_image, items, annotations.items), confusion
        )
        if skill is None:
            confusion, skill = counts.confusion(), counts.skill()
        self._set_annotators(
            RaterFacts(
                skill, counts.skill_interval(skill), counts.given.astype(np.int64), confusion,
                counts.confusion_interval(confusion),
            )
        )  # fmt: skip
        self.warnings_ = warn_of_answers(self.method_, counts, annotations, self._matrix_of, stacklevel=5)

    @torch.no_grad()
    def _learnt_matrices(self) -> tuple[np.ndarray | None, np.ndarray]:
        """The annotator model's matrices, unless they are too many to keep, and their skills."""
        n_raters, n_classes = len(self.raters_), len(self.classes_)
        if n_raters * n_classes**2 <= MOST_KEPT:
            confusion = self._matrices(torch.arange(n_raters))
            return confusion, np.diagonal(confusion, axis1=1, axis2=2).mean(axis=1)
        return None, np.array([np.diagonal(self._matrices(torch.tensor([r]))[0]).mean() for r in range(n_raters)])

    def _matrix_of(self, rater: int) -> np.ndarray:
        if self._raters.confusion is None and self.method_.learns_annotators:
            return self._matrices(torch.tensor([rater]))[0]
        return super()._matrix_of(rater)

    @torch.no_grad()
    def _matrices(self, raters: torch.Tensor) -> np.ndarray:
        any_image = torch.zeros(1, self._spec.channels, *[1] * self._spec.dims)  # the matrices are the same for all
        return self.module_.annotators(any_image, raters).dense()[0].double().numpy()

    @property
    def dims_(self) -> int:
        """How many spatial axes the images have; 0 = feature vectors."""
        check_is_fitted(self, "annotators_")
        return self._spec.dims

    # -- using --------------------------------------------------------------------------------------------------

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the true class, (items, classes), of images, features, or annotations that carry them."""
        check_is_fitted(self, "annotators_")
        names: Sequence[object]
        if isinstance(X, Annotations):
            item, count, names = X.item_image, len(X), X.items
        else:
            array = self._array(X)
            item, count = (lambda index: finite_image(array[index], f"Item {index}")), len(array)
            names = range(count)
        blocks = (range(start, min(start + BLOCK, count)) for start in range(0, count, BLOCK))
        return np.concatenate([self._probabilities(item, block, names) for block in blocks])

    def predict(self, X: Any) -> np.ndarray:
        """The most likely class of each item, as its label was given: (items,)."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Share of items whose class is predicted rightly.

        Parameters
        ----------
        X : images or features; or annotations, whose truth is then taken
        y : (items,) true labels as they were given, or class numbers where the classes have names; -1 = unknown
        """
        if isinstance(X, Annotations):
            y = X.truth if y is None else y
        if np.issubdtype(np.asarray(y).dtype, np.integer) and self.classes_.dtype.kind not in "iub":
            known = np.flatnonzero(np.asarray(y) != MISSING_LABEL)
            X = X.take(known) if isinstance(X, Annotations) else np.asarray(X)[known]
            y = self.classes_[np.asarray(y)[known]]
        return super().score(X, y, sample_weight)

    @torch.no_grad()
    def _probabilities(
        self, item: Callable[[int], np.ndarray], items: Sequence[int], names: Sequence[object]
    ) -> np.ndarray:
        tensors = [self._standardised(item(index), names[index]) for index in items]
        alike = len({tensor.shape for tensor in tensors}) == 1
        batches = [torch.stack(tensors)] if alike else [tensor[None] for tensor in tensors]
        return torch.cat([self.module_.log_truth(batch).double().softmax(dim=1) for batch in batches]).numpy()

    def _standardised(self, image: np.ndarray, name: object) -> torch.Tensor:
        wanted = self._spec.dims + 1
        if image.ndim != wanted or len(image) != self._spec.channels:
            axes = f", {self._spec.dims} spatial axes" if self._spec.dims else ""
            raise InputError(
                f"Item {name} has shape {image.shape}; the model needs {self._spec.channels} "
                f"{'channel(s)' if axes else 'features'}{axes}."
            )
        return self._standard(image)

    # -- keeping ------------------------------------------------------------------------------------------------

    def _used_settings(self) -> dict[str, Any]:
        return {"network": self._network, "augment": self._augments()}

    def _facts(self) -> dict[str, Any]:
        return {"network": self._network, "size": self._size}

    def _take_facts(self, facts: dict[str, Any]) -> None:
        self.classes_ = np.array(facts["classes"])
        self._size = tuple(facts.get("size", ()))
        own = isinstance(self.network, nn.Module)
        if "network" in facts or own:
            self._network = facts.get("network", "own")
        else:  # a file of annotruth 0.1, where None and "resnet" meant other networks, and nothing was augmented
            default = "cnn" if self._spec.dims else "mlp"
            self._network = "resnet of 0.1" if self.network == "resnet" else str(self.network or default)
        if "network" not in facts:
            self.augment = False
