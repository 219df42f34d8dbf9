"""A method is three parts: a truth model, an annotator model, and an objective. Here is what they share."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor, nn

from annotruth.data.annotations import Annotations
from annotruth.data.answers import Answers, sort_answers
from annotruth.errors import AnnotruthWarning, InputError
from annotruth.fusion.base import FusionEstimator
from annotruth.nn import Confusion, IdentityAnnotators, classifier_network, noisy_label_loss, unet
from annotruth.validation import MISSING_LABEL, MISSING_PIXEL, one_of

Task = Literal["masks", "labels"]
"""Masks are learnt by a segmenter, one label per item by a classifier."""


@dataclass(frozen=True)
class DataSpec:
    """What a network must fit: the data's channels (or features), raters, classes, spatial axes, and the task.

    ``rater_columns`` counts the numbers that tell what is known of a rater, where the method takes that.
    """

    channels: int
    raters: int
    classes: int
    dims: int
    task: Task = "masks"
    rater_columns: int = 0


class Batch(NamedTuple):
    """Items to learn from, together.

    Attributes
    ----------
    images : (items, channels, *spatial), or (items, features)
    labels : (items, raters, *spatial) uint8, 255 = not labelled; or (items, raters) int16, -1 = not labelled
    positions : (items,) where the items stand in the data set
    raters : (raters,) who the raters of ``labels`` are, where only those with a label in this batch are listed; None =
        all, in order
    confusion : (items, all raters, classes, classes) what is known of the raters' errors on these items, nan where
        nothing is; None = nothing
    truth : (items, *spatial) uint8 true labels to learn from beside the raters', 255 = unknown; None = none are known
    """

    images: Tensor
    labels: Tensor
    positions: Tensor | None = None
    raters: Tensor | None = None
    confusion: Tensor | None = None
    truth: Tensor | None = None


class MethodModel(nn.Module):
    """A truth model and an annotator model, side by side: what a method trains and a file stores."""

    def __init__(self, truth: nn.Module, annotators: nn.Module) -> None:
        super().__init__()
        self.truth = truth
        self.annotators = annotators

    def log_truth(self, images: Tensor) -> Tensor:
        """Log-probabilities (batch, classes, *spatial) of the true class."""
        return F.log_softmax(self.truth(images), dim=1)

    def rater_confusion(self, batch: Batch) -> Confusion:
        """The matrices of a batch's raters."""
        if batch.raters is None:
            return self.annotators(batch.images)
        return self.annotators(batch.images, batch.raters)


@dataclass(frozen=True)
class Method:
    """The default composition: a network, raters taken at their word, and the likelihood of their labels.

    A method overrides what it does differently. Its fields are its options; their defaults are the method's.
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    summary: ClassVar[str]
    tasks: ClassVar[tuple[Task, ...]] = ("masks", "labels")
    """What the method can learn from."""
    learns_annotators: ClassVar[bool] = False
    """Whether the annotator model tells how raters err; if not, they are compared with the estimated truth later."""

    learns_from_raters: ClassVar[bool] = True
    """Whether the raters' labels teach the network, so that their errors can mislead it."""
    learns_from_truth: ClassVar[bool] = False
    """Whether the method also learns from the true labels of some items, where they are known."""
    annotator_rate: ClassVar[float] = 1.0
    """The annotator model's learning rate, as a multiple of the truth model's."""

    def check(self, annotations: Annotations) -> None:
        """Refuse annotations that the method cannot learn from, before anything is begun."""

    def mask_targets(self, annotations: Annotations, index: int) -> Tensor:
        """What one item's labels say: (raters, *spatial) uint8. Every rater's mask, unless a method fuses them."""
        return as_tensor(annotations.item_masks(index))

    def label_targets(self, annotations: Annotations) -> Answers:
        """What a label table says: every rater's answers, unless a method fuses them."""
        return annotations.answers

    def n_targets(self, shape: DataSpec) -> int:
        """How many raters :meth:`supervision` and :meth:`answers` give."""
        return shape.raters

    def known_confusion(self, annotations: Annotations, index: int) -> Tensor | None:
        """What is known beforehand of the raters' errors on one item (raters, classes, classes), nan where nothing is.

        None if nothing is known of any item.
        """
        return None

    def truth_model(self, shape: DataSpec) -> nn.Module:
        """The network from images to class scores, where the user gives none."""
        if shape.task == "labels":
            return classifier_network(None, shape.channels, shape.classes, shape.dims)
        return unet(shape.channels, shape.classes, dims=shape.dims)

    def annotator_model(self, shape: DataSpec) -> nn.Module:
        """The model of how raters err."""
        return IdentityAnnotators(self.n_targets(shape), shape.classes)

    def build(self, shape: DataSpec, network: nn.Module | None = None) -> MethodModel:
        """Put the parts together, around the user's own network if there is one."""
        return MethodModel(network if network is not None else self.truth_model(shape), self.annotator_model(shape))

    def prepare(self, parts: MethodModel, annotations: Annotations) -> None:
        """Give the parts what they are to know of the training items, before training."""

    def begin_epoch(self, parts: MethodModel, batches: Iterable[Batch], progress: float) -> None:
        """Look at all training items before an epoch, for methods that alternate two kinds of steps.

        The parts are in evaluation mode, and no gradients are taken.
        """

    def loss(self, parts: MethodModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        """The loss to minimise, and the negative log-likelihood of the labels.

        ``progress`` runs from 0 to 1 over the training.
        """
        return noisy_label_loss(parts.log_truth(batch.images), parts.rater_confusion(batch), batch.labels)

    def finish(self, parts: MethodModel, batches: Iterable[Batch]) -> None:
        """Look at all training items once more when the network is trained, as :meth:`begin_epoch` does."""

    def after_epoch(self, parts: MethodModel, likelihood: float, progress: float) -> None:
        """Look at the negative log-likelihood of held-out labels (of the training ones, where none are held out)."""

    def annotator_pace(self, parts: MethodModel, progress: float) -> float:
        """By how much ``annotator_rate`` is multiplied at this point of the training."""
        return 1.0

    def settled(self, parts: MethodModel, progress: float) -> bool:
        """Whether the loss has taken its final form; before that, training is not stopped early."""
        return True

    def confusion(self, parts: MethodModel, images: Tensor) -> Confusion:
        """Every rater's confusion matrices for these images."""
        return parts.annotators(images)

    def asked(
        self,
        raters: Sequence[str],
        recurrence: int | None = None,
        confidences: Mapping[str, float] | Sequence[float] | None = None,
    ) -> dict[str, Any]:
        """What a user asks of a prediction, as arguments of ``parts.log_truth``; most methods can be asked nothing.

        Parameters
        ----------
        raters : those the model was trained on
        recurrence : after which recurrence, counted from 0
        confidences : how far to trust raters, by name or one number for each
        """
        for name, value in (("recurrence", recurrence), ("confidences", confidences)):
            if value is not None:
                raise InputError(f"The method {self.name} knows nothing of {name}=; leave it out, or train mrprism.")
        return {}

    def rater_confidences(self, parts: MethodModel, images: Tensor, raters: int, **how: Any) -> Tensor:
        """How probable each rater is to be right, Σ_k p_k·A[k, k], at every pixel: (batch, raters, *spatial)."""
        log_truth = parts.log_truth(images, **how)
        nothing = torch.full((len(images), raters, *images.shape[2:]), MISSING_PIXEL, dtype=torch.uint8)
        return self.confusion(parts, images).likelihood(log_truth, nothing.to(images.device), log_truth.exp())[1]

    def fused(self, parts: MethodModel, images: Tensor, labels: Tensor, **how: Any) -> Tensor:
        """Probabilities (batch, classes, *spatial) of the truth, given images and labels (batch, raters, *spatial)."""
        log_truth, confusion = parts.log_truth(images, **how), self.confusion(parts, images)
        scores = []
        for number in range(log_truth.shape[1]):  # how likely are the labels, if this is the truth?
            sure = torch.full_like(log_truth, -torch.inf)
            sure[:, number] = 0
            scores.append(confusion.likelihood(sure, labels)[0].sum(dim=1))
        return (log_truth + torch.stack(scores, dim=1)).softmax(dim=1)

    def drawings(
        self, parts: MethodModel, images: Tensor, n: int, generator: torch.Generator, shape: DataSpec
    ) -> Tensor:
        """What n people might draw: probabilities (n, batch, classes, *spatial), whose likeliest labels are a drawing.

        Each is one of the raters whose errors the method knows, in rounds of all of them in random order, and is drawn
        from the probabilities of that rater's labels: at every pixel the likeliest label, after each class was favoured
        by chance (by a Gumbel number, which gives labels with just their probabilities). Chance favours a class alike
        at all pixels, as a person draws generously or sparingly throughout, and for the whole batch, so that windows of
        one image fit together. Where a method knows no errors, everybody draws the estimated truth.
        """
        log_truth = parts.log_truth(images)
        if not self.learns_annotators:
            return log_truth.exp().expand(n, *log_truth.shape)
        who = in_rounds(shape.raters, n, generator).to(images.device)
        confusion = self.confusion(parts, images)
        size = (len(images), shape.raters, *images.shape[2:])
        # One label after the other: no matrix per pixel is formed, however many classes there are.
        labels = (torch.full(size, number, dtype=torch.uint8, device=images.device) for number in range(shape.classes))
        by_label = [confusion.likelihood(log_truth, label)[0][:, who] for label in labels]
        favour = -(-torch.rand(n, shape.classes, generator=generator).log()).log()
        favour = favour.view(n, 1, shape.classes, *[1] * shape.dims).to(images.device)
        return (torch.stack(by_label, dim=2).transpose(0, 1) + favour).softmax(dim=2)


METHODS: dict[str, type[Method]] = {}
_FORMS: dict[tuple[str, Task], type[Method]] = {}


def register(method: type[Method]) -> type[Method]:
    """Make a method known by its name. It may have two forms of that name, each serving its own task."""
    METHODS.setdefault(method.name, method)
    _FORMS.update({(method.name, task): method for task in method.tasks})
    return method


def methods_for(task: Task) -> list[str]:
    """Names of the methods that serve a task.

    Examples
    --------
    >>> "pixel-cm" in methods_for("masks"), "pixel-cm" in methods_for("labels")
    (True, False)
    """
    return sorted(name for name, served in _FORMS if served == task)


def make_method(name: str, options: dict[str, Any] | None = None, task: Task | None = None) -> Method:
    """A method by its name, with options; one that does not serve the task is refused.

    Examples
    --------
    >>> make_method("pixel-cm", {"trace_weight": 0.1}).trace_weight
    0.1
    """
    one_of(name, sorted(METHODS), "method")
    method = METHODS[name] if task is None else _FORMS.get((name, task))
    if method is None:
        kind, fitting = "masks" if task == "masks" else "label tables", ", ".join(methods_for(task or "masks"))
        raise InputError(f"The method {name} does not learn from {kind}. Those that do: {fitting}.")
    known = {field.name: field for field in fields(method)}
    options = options or {}
    for option in options:
        if option not in known:
            listed = ", ".join(known) if known else "none"
            raise InputError(f"The method {name} has no option {option!r}. Its options: {listed}.")
        if options[option] is not None or known[option].default is not None:
            _check_kind(name, option, str(known[option].type), options[option])
    return method(**options)


def _check_kind(name: str, option: str, declared: str, value: Any) -> None:
    kinds = {"int": (Integral, "a whole number"), "float": (Real, "a number"), "str": (str, "a word")}
    kind, word = kinds.get(declared.removesuffix(" | None"), (object, ""))
    if not isinstance(value, kind) or (isinstance(value, bool) and word):
        raise InputError(f"The option {option} of {name} must be {word}, not {value!r}.")


def in_rounds(raters: int, n: int, generator: torch.Generator) -> Tensor:
    """Who makes each of n drawings: (n,). Everybody once in each round, in random order."""
    return torch.cat([torch.randperm(raters, generator=generator) for _ in range(-(-n // raters))])[:n]


def as_tensor(masks: np.ndarray) -> Tensor:
    """Masks as a tensor; views that torch cannot take (mirrored, read-only) are copied."""
    return torch.from_numpy(np.require(masks, requirements=["C", "W"]))


def answers_of_one(labels: np.ndarray) -> Answers:
    """Labels (items,), -1 = none, as the answers of a single rater.

    Examples
    --------
    >>> answers_of_one(np.array([2, -1, 0])).item
    array([0, 2], dtype=int32)
    """
    item = np.flatnonzero(np.asarray(labels) != MISSING_LABEL)
    return sort_answers(item, np.zeros_like(item), np.asarray(labels)[item])


@contextmanager
def quietly() -> Iterator[None]:
    """Fuse without warnings: doubts are no news here, where the model states them for what it learns itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AnnotruthWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def fused_answers(estimator: FusionEstimator, annotations: Annotations) -> Answers:
    """What an estimator makes of a label table: one answer for every item that anybody answered."""
    with quietly():
        fused = estimator.fit(annotations)
    answered = np.bincount(annotations.answers.item, minlength=len(annotations)) > 0
    return answers_of_one(np.where(answered, fused.predict(), MISSING_LABEL))


def majority_of(labels: Tensor, classes: int) -> Tensor:
    """The most frequent label of every pixel, (raters, *spatial) to (1, *spatial); the lowest class wins a tie."""
    votes = torch.stack([(labels == number).sum(dim=0) for number in range(classes)])
    winner = votes.argmax(dim=0).to(torch.uint8)
    winner[votes.sum(dim=0) == 0] = MISSING_PIXEL
    return winner[None]
