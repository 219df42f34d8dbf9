"""How raters' labels meet the estimated truth: counted item by item, for masks and for label tables.

Of masks also how the method's own matrices meet it. From these counts follow matrices, skills and their intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from annotruth.data.annotations import Annotations
from annotruth.data.answers import Answers
from annotruth.fusion.em import MIN_EXPECTED_COUNT, log_of, truth_posterior
from annotruth.fusion.raters import diagonal_interval, share_interval
from annotruth.fusion.votes import first_answers
from annotruth.methods import Method, MethodModel
from annotruth.nn import Confusion, one_hot_argmax
from annotruth.parallel.memory import keep_freed_memory
from annotruth.training.batches import loader
from annotruth.training.datasets import MaskDataset
from annotruth.training.raters import hold
from annotruth.validation import MISSING_PIXEL

RESAMPLES = 200
"""How often items are drawn anew for the intervals of masks' matrices."""
MOST_KEPT = 2**27
"""Numbers in all raters' matrices up to which they are kept at once: one gigabyte."""
MOST_BOUNDED = 2**18
"""Numbers in all raters' matrices up to which each has an interval: a second's work."""
BLOCK = 1024
"""Items whose truth is estimated at once."""


@dataclass(frozen=True)
class MaskCounts:
    """How raters and estimated truth meet on a set of items.

    Attributes
    ----------
    met : (items, raters, classes, classes) how often, in expectation, each true class met each label
    decided : (raters, classes, classes) the same over all items, a pixel being of its likeliest class alone
    learnt : (items, raters, classes, classes) rows of the method's own matrices, summed with the estimated truth as
        weight; None where it has none
    alike : (classes,) Dice of the two raters who agree best on a class, over all pixels that both labelled; 0 where no
        two did
    """

    met: np.ndarray
    decided: np.ndarray
    learnt: np.ndarray | None
    alike: np.ndarray

    def confusion(self) -> np.ndarray:
        """Matrices (raters, classes, classes): the method's own, or else what the labels say."""
        rows = (self.met if self.learnt is None else self.learnt).sum(axis=0)
        return row_means(rows, rows.sum(axis=2))


@torch.no_grad()
@keep_freed_memory()
def count_items(
    method: Method[Any], model: MethodModel, cases: MaskDataset, batch_size: int, patch: Sequence[int] | None = None
) -> MaskCounts:
    """Count every rater's labels, and the method's own matrices if it has any, against the estimated truth.

    Parameters
    ----------
    cases : items with every rater's labels
    patch : the most that fits through the network at once
    """
    every: list[tuple[Tensor, ...]] = []
    both = either = torch.zeros(())
    for batch in loader(cases, batch_size):
        sizes = [cases.shape(position) for position in batch.positions.tolist()]
        sums: list[Tensor] = []
        for window, truth in _estimates(model, batch.images, sizes, patch):
            labels = batch.labels[window]
            found = [_against_labels(truth, labels), _against_labels(_decided(truth), labels)]
            if method.learns_annotators:
                found.append(method.confusion(model, batch.images[window]).mean_rows(truth)[0])
            sums = [a + b.double() for a, b in zip(sums, found)] if sums else [each.double() for each in found]
        every.append(tuple(sums))
        marked = _marked_together(batch.labels, len(cases.annotations.classes))
        both, either = both + marked[0], either + marked[1]
    met, decided, *learnt = (torch.cat(of_batches).numpy() for of_batches in zip(*every))
    alike = (both / either.clamp_min(1)).triu(diagonal=1).amax(dim=(1, 2)).numpy()
    return MaskCounts(met, decided.sum(axis=0), learnt[0] if learnt else None, alike)


@torch.no_grad()
def mean_matrices(
    confusion: Callable[[Tensor], Confusion], model: MethodModel, image: Tensor, patch: Sequence[int] | None
) -> tuple[np.ndarray, np.ndarray]:
    """Sum an annotator model's matrices over one image (channels, *spatial), with the estimated truth as weight.

    Returns
    -------
    rows : (raters, classes, classes);  weights : (classes,)
    """
    rows, weights = torch.zeros(()), torch.zeros(())
    for window, truth in _estimates(model, image[None], [tuple(image.shape[1:])], patch):
        row, weight = confusion(image[None][window]).mean_rows(truth)
        rows, weights = rows + row.double(), weights + weight.double()
    return rows[0].numpy(), weights[0, 0, :, 0].numpy()


def _estimates(
    model: MethodModel, images: Tensor, sizes: Sequence[tuple[int, ...]], patch: Sequence[int] | None
) -> Iterator[tuple[tuple[slice, ...], Tensor]]:
    """The estimated truth (batch, classes, *spatial) window by window, every pixel once.

    It is 0 where a pixel was in an earlier window, and in the padding of images beyond their ``sizes``.
    """
    to_count = _inside(images, sizes)
    for window in _windows(images.shape[2:], patch):
        truth = model.log_truth(images[window]).exp() * to_count[window]
        to_count[window] = 0  # windows overlap at the far ends
        yield window, truth


def _decided(truth: Tensor) -> Tensor:
    """1 for the likeliest class of every pixel that counts, 0 for the others."""
    return one_hot_argmax(truth) * (truth.sum(dim=1, keepdim=True) > 0)


def _inside(images: Tensor, sizes: Sequence[tuple[int, ...]]) -> Tensor:
    """1 inside each item and 0 in the padding of a batch of different sizes: (batch, 1, *spatial)."""
    inside = torch.zeros(len(images), 1, *images.shape[2:])
    for item, size in zip(inside, sizes):
        item[(slice(None), *[slice(length) for length in size])] = 1
    return inside


def _windows(size: Sequence[int], patch: Sequence[int] | None) -> Iterator[tuple[slice, ...]]:
    """Cover a batch (batch, channels, *spatial) with windows of a patch's size."""
    step = size if patch is None else patch
    corners = [
        [max(min(start, length - width), 0) for start in range(0, length, width)] for length, width in zip(size, step)
    ]
    for corner in product(*corners):
        yield (slice(None), slice(None), *[slice(start, start + width) for start, width in zip(corner, step)])


def _against_labels(truth: Tensor, labels: Tensor) -> Tensor:
    """How often each true class (batch, classes, *spatial) met each label: (batch, raters, classes, classes)."""
    truth, labels = truth.flatten(2), labels.flatten(2)
    met = [torch.einsum("bis,brs->bri", truth, (labels == number).to(truth.dtype)) for number in range(truth.shape[1])]
    return torch.stack(met, dim=3)


def _marked_together(labels: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """Numerator and denominator of the Dice of every two raters on each class: (classes, raters, raters) each.

    Of labels (batch, raters, *spatial), only pixels that both labelled count.
    """
    labels = labels.flatten(2)
    given = (labels != MISSING_PIXEL).float()
    marked = torch.stack([(labels == number).float() for number in range(classes)])
    size = torch.einsum("cbrs,bqs->crq", marked, given).double()
    return 2 * torch.einsum("cbrs,cbqs->crq", marked, marked).double(), size + size.transpose(1, 2)


def row_means(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Rows (raters, classes, classes) divided by their weights (raters, classes).

    A row nobody has evidence for is taken as faithful.
    """
    faithful = np.broadcast_to(np.eye(rows.shape[-1]), rows.shape)
    return np.where(weights[..., None] > 1e-9, rows / np.maximum(weights[..., None], 1e-9), faithful)


def resampled_intervals(met: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """95 % intervals from resampling items: of matrices (raters, 2, classes, classes) and of skills (raters, 2).

    Parameters
    ----------
    met : (items, raters, classes, classes) how often each true class met each label. Where a resample has none of a
        class, anything may be true of its row

    Examples
    --------
    >>> always, never_seen = [[8.0, 2.0], [1.0, 9.0]], [[0.0, 0.0], [0.0, 0.0]]
    >>> matrices, skills = resampled_intervals(np.array([[always, never_seen]] * 3), seed=0)
    >>> matrices[0].tolist()  # the lower bounds and the upper bounds
    [[[0.8, 0.2], [0.1, 0.9]], [[0.8, 0.2], [0.1, 0.9]]]
    >>> skills.round(3).tolist()
    [[0.85, 0.85], [0.0, 1.0]]
    """
    n_items, n_raters, n_classes, _ = met.shape
    rng = np.random.default_rng(seed)
    times = rng.multinomial(n_items, np.full(n_items, 1 / n_items), size=RESAMPLES).astype(np.float64)
    matrices, skills = np.empty((n_raters, 2, n_classes, n_classes)), np.empty((n_raters, 2))
    for rater in range(n_raters):
        sums = np.tensordot(times, met[:, rater], axes=1)
        total = sums.sum(axis=2, keepdims=True)
        for bound, (unknown, level) in enumerate(((0.0, 0.025), (1.0, 0.975))):
            rates = np.where(total > 1e-9, sums / np.maximum(total, 1e-9), unknown)
            matrices[rater, bound] = np.quantile(rates, level, axis=0)
            skills[rater, bound] = np.quantile(np.diagonal(rates, axis1=1, axis2=2).mean(axis=1), level)
    return matrices, skills


@dataclass(frozen=True)
class AnswerCounts:
    """How the raters' answers meet the estimated truth.

    Attributes
    ----------
    given : (raters,) how many answers each gave
    frequency : (classes,) how common each class is
    of_class : (raters, classes) expected items of each true class that a rater answered
    right : (raters, classes) expected right answers among them
    met : (raters, classes, classes) all expected answers, [true, observed]; None where they are too many to keep
    """

    given: np.ndarray
    frequency: np.ndarray
    of_class: np.ndarray
    right: np.ndarray
    met: np.ndarray | None

    @classmethod
    def of(
        cls,
        annotations: Annotations,
        truth_of: Callable[[range], np.ndarray],
        learnt: np.ndarray | None = None,
    ) -> AnswerCounts:
        """Go through all items, ``truth_of`` giving the probabilities (items, classes) of some.

        With matrices (raters, classes, classes) ``learnt``, answers are counted against what the items and all answers
        say together: a network that is rightly unsure would make good raters look careless.
        """
        answers, n_raters, n_classes = annotations.answers, len(annotations.raters), len(annotations.classes)
        first = first_answers(answers, len(annotations))
        frequency = np.zeros(n_classes)
        of_class, right = np.zeros((2, n_raters, n_classes))
        kept = n_raters * n_classes**2 <= MOST_KEPT
        by_label = np.zeros((n_raters, n_classes, n_classes) if kept else 0)
        for start in range(0, len(annotations), BLOCK):
            items = range(start, min(start + BLOCK, len(annotations)))
            truth = truth_of(items)
            frequency += truth.sum(axis=0)
            here = slice(first[items.start], first[items.stop])
            rater, label = answers.rater[here], answers.label[here]
            if learnt is not None:
                who, number = np.unique(rater, return_inverse=True)
                given = Answers(answers.item[here] - np.int32(items.start), number.astype(np.int32), label)
                truth, _ = truth_posterior(given, log_of(truth), log_of(np.maximum(learnt[who], MIN_EXPECTED_COUNT)))
            of_answer = truth[answers.item[here] - items.start]
            np.add.at(of_class, rater, of_answer)
            np.add.at(right, (rater, label), of_answer[np.arange(len(label)), label])
            if kept:
                np.add.at(by_label, (rater, label), of_answer)
        return cls(
            given=np.bincount(answers.rater, minlength=n_raters).astype(np.float64),
            frequency=frequency / frequency.sum(),
            of_class=of_class,
            right=right,
            met=np.ascontiguousarray(by_label.transpose(0, 2, 1)) if kept else None,
        )

    def confusion(self) -> np.ndarray | None:
        """Matrices (raters, classes, classes), each answer counted against the truth; None where too many to keep.

        A row without evidence is taken as faithful.
        """
        if self.met is None:
            return None
        total = self.of_class[..., None]
        faithful = np.broadcast_to(np.eye(self.met.shape[1]), self.met.shape)
        return np.where(total > 1e-9, self.met / np.maximum(total, 1e-9), faithful)

    def skill(self) -> np.ndarray:
        """Mean diagonal (raters,) of :meth:`confusion`."""
        known = self.of_class > 1e-9
        return np.where(known, self.right / np.maximum(self.of_class, 1e-9), 1.0).mean(axis=1)

    def skill_interval(self, skill: np.ndarray, level: float = 0.95) -> np.ndarray:
        """Credible bounds (raters, 2) of the skills, moved as far as needed to hold the estimates ``skill``.

        Before anything is seen, each class's chance to be right may be anything (Jeffreys' prior).
        """
        low, high = diagonal_interval(self.right + 0.5, np.maximum(self.of_class - self.right, 0) + 0.5, level)
        return hold(skill, np.stack([low, high], axis=1))

    def confusion_interval(self, confusion: np.ndarray | None, level: float = 0.95) -> np.ndarray | None:
        """Credible bounds (raters, 2, classes, classes) of the matrices' entries; None where there are too many."""
        if confusion is None or self.met is None or confusion.size > MOST_BOUNDED:
            return None
        low, high = share_interval(self.met, np.maximum(self.of_class[..., None] - self.met, 0), level)
        return hold(confusion, np.stack([low, high], axis=1))
