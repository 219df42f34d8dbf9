"""How raters' labels, or a method's own matrices, meet the estimated truth, item by item."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from torch import Tensor

from annotruth.methods import Method, MethodModel
from annotruth.nn import Confusion
from annotruth.training.datasets import MaskDataset, loader
from annotruth.validation import MISSING_PIXEL

RESAMPLES = 200


@dataclass(frozen=True)
class Counts:
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
def count_items(
    method: Method, parts: MethodModel, cases: MaskDataset, batch_size: int, patch: Sequence[int] | None = None
) -> Counts:
    """Count every rater's labels, and the method's own matrices if it has any, against the estimated truth.

    Parameters
    ----------
    cases : items with every rater's labels
    patch : the most that fits through the network at once
    """
    every: list[tuple[Tensor, ...]] = []
    both = either = torch.zeros(())
    for batch in loader(cases, batch_size):
        sizes = [cases.annotations.shape(position) for position in batch.positions.tolist()]
        sums: list[Tensor] = []
        for window, truth in _estimates(parts, batch.images, sizes, patch):
            labels = batch.labels[window]
            found = [_against_labels(truth, labels), _against_labels(_decided(truth), labels)]
            if method.learns_annotators:
                found.append(method.confusion(parts, batch.images[window]).mean_rows(truth)[0])
            sums = [a + b.double() for a, b in zip(sums, found)] if sums else [each.double() for each in found]
        every.append(tuple(sums))
        marked = _marked_together(batch.labels, len(cases.annotations.classes))
        both, either = both + marked[0], either + marked[1]
    met, decided, *learnt = (torch.cat(of_batches).numpy() for of_batches in zip(*every))
    alike = (both / either.clamp_min(1)).triu(diagonal=1).amax(dim=(1, 2)).numpy()
    return Counts(met, decided.sum(axis=0), learnt[0] if learnt else None, alike)


@torch.no_grad()
def mean_matrices(
    confusion: Callable[[Tensor], Confusion], parts: MethodModel, image: Tensor, patch: Sequence[int] | None
) -> tuple[np.ndarray, np.ndarray]:
    """Sum an annotator model's matrices over one image (channels, *spatial), with the estimated truth as weight.

    Returns
    -------
    rows : (raters, classes, classes);  weights : (classes,)
    """
    rows, weights = torch.zeros(()), torch.zeros(())
    for window, truth in _estimates(parts, image[None], [tuple(image.shape[1:])], patch):
        row, weight = confusion(image[None][window]).mean_rows(truth)
        rows, weights = rows + row.double(), weights + weight.double()
    return rows[0].numpy(), weights[0, 0, :, 0].numpy()


def _estimates(
    parts: MethodModel, images: Tensor, sizes: Sequence[tuple[int, ...]], patch: Sequence[int] | None
) -> Iterator[tuple[tuple[slice, ...], Tensor]]:
    """The estimated truth (batch, classes, *spatial) window by window, every pixel once.

    It is 0 where a pixel was in an earlier window, and in the padding of images beyond their ``sizes``.
    """
    to_count = _inside(images, sizes)
    for window in _windows(images.shape[2:], patch):
        truth = parts.log_truth(images[window]).exp() * to_count[window]
        to_count[window] = 0  # windows overlap at the far ends
        yield window, truth


def _decided(truth: Tensor) -> Tensor:
    """1 for the likeliest class of every pixel that counts, 0 for the others."""
    best = torch.zeros_like(truth).scatter_(1, truth.argmax(dim=1, keepdim=True), 1.0)
    return best * (truth.sum(dim=1, keepdim=True) > 0)


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
