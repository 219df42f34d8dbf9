"""How raters' labels, or a method's own matrices, meet the estimated truth, item by item."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import torch

from annotruth.methods import Method, Parts
from annotruth.training.data import Cases, loader

RESAMPLES = 200


@torch.no_grad()
def count_confusion(
    method: Method, parts: Parts, cases: Cases, batch_size: int, patch: Sequence[int] | None, *, of_labels: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Sum every item's confusion rows, weighted with the estimated truth.

    Parameters
    ----------
    cases : items with every rater's labels
    patch : the most that fits through the network at once
    of_labels : whether the raters' labels are counted against the estimated truth, or the method's own matrices are
        summed

    Returns
    -------
    rows : (items, raters, classes, classes);  weights : (items, raters, classes)
    """
    rows, weights = [], []
    for batch in loader(cases, batch_size):
        sizes = [cases.annotations.shape(position) for position in batch.positions.tolist()]
        labels = batch.labels if of_labels else None
        row, weight = sum_rows(method, parts, batch.images, labels, sizes, patch)
        rows.append(row.numpy())
        weights.append(weight.numpy())
    return np.concatenate(rows), np.concatenate(weights)


def sum_rows(
    method: Method,
    parts: Parts,
    images: torch.Tensor,
    labels: torch.Tensor | None,
    sizes: Sequence[tuple[int, ...]],
    patch: Sequence[int] | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """As :func:`count_confusion`, for one batch: of the labels, or without them of the method's own matrices.

    Images are padded beyond their ``sizes``; padding does not count.
    """
    to_count = _inside(images, sizes)
    rows, weights = torch.zeros(()), torch.zeros(())
    for window in _windows(images.shape[2:], patch):
        truth = parts.log_truth(images[window]).exp() * to_count[window]
        to_count[window] = 0  # windows overlap at the far ends
        if labels is None:
            row, weight = method.confusion(parts, images[window]).mean_rows(truth)
            weight = weight.squeeze(3).expand(row.shape[:3])
        else:
            row = _against_labels(truth, labels[window])
            weight = row.sum(dim=3)
        rows, weights = rows + row.double(), weights + weight.double()
    return rows, weights


def _inside(images: torch.Tensor, sizes: Sequence[tuple[int, ...]]) -> torch.Tensor:
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


def _against_labels(truth: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """How often each true class (batch, classes, *spatial) met each label: (batch, raters, classes, classes)."""
    truth, labels = truth.flatten(2), labels.flatten(2)
    met = [torch.einsum("bis,brs->bri", truth, (labels == number).to(truth.dtype)) for number in range(truth.shape[1])]
    return torch.stack(met, dim=3)


def mean_confusion(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Average rows over items: (raters, classes, classes). A row nobody has evidence for is taken as faithful."""
    total = weights.sum(axis=0)[..., None]
    faithful = np.broadcast_to(np.eye(rows.shape[-1]), rows.shape[1:])
    return np.where(total > 1e-9, rows.sum(axis=0) / np.maximum(total, 1e-9), faithful)


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
