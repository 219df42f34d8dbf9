"""Truth and raters of one case, with confusion matrices estimated from a window around each pixel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from annotruth.fusion._em.box_sum import box_sum
from annotruth.fusion.em import log_of
from annotruth.parallel.threads import run_parts, split_range
from annotruth.validation import MISSING_PIXEL

_PART = 2**16  # pixels per part


@dataclass(frozen=True)
class LocalProblem:
    """What the local estimate of one case starts from.

    Attributes
    ----------
    masks : (raters, pixels) uint8 labels, 255 = missing
    shape : the pixels' grid
    fixed : (pixels,) uint8, 1 for pixels whose posterior is given (gold labels, consensus) and stays
    confusion : (raters, classes, classes) of the whole, towards which local matrices are drawn
    prior : (classes,) of the whole, likewise
    window : odd side of the window along each axis
    shrinkage : how many pixels the whole's matrix and prior count for
    """

    masks: np.ndarray
    shape: tuple[int, ...]
    fixed: np.ndarray
    confusion: np.ndarray
    prior: np.ndarray
    window: tuple[int, ...]
    shrinkage: float


def local_truth(problem: LocalProblem, posterior: np.ndarray, max_iter: int, tol: float) -> tuple[int, bool]:
    """Alternate local matrices and posteriors, from a first posterior on.

    The prior is local too, the window's share of each class drawn towards the whole's. With one prior for the whole
    picture, windows that hold a single class would be split in two to make up for the class that is missing.

    Parameters
    ----------
    posterior : (classes, pixels) float32: the first, replaced by the last
    max_iter, tol : stop after so many iterations, or when the posteriors move by no more than tol on average

    Returns
    -------
    iterations taken, whether they settled
    """
    score = np.empty_like(posterior)
    area = _window_sum(problem, np.ones_like(posterior[0]))
    parts = split_range(posterior.shape[1], _PART)
    for iteration in range(1, max_iter + 1):
        for true, frequency in enumerate(problem.prior):
            nearby = _window_sum(problem, posterior[true].copy())
            score[true] = log_of((nearby + problem.shrinkage * frequency) / (area + problem.shrinkage))
        for rater in range(len(problem.masks)):
            for row in np.flatnonzero(problem.prior > 0):
                _add_evidence(problem, rater, int(row), posterior[row], score[row])
        moved = sum(run_parts(lambda a, b: _normalise(score, problem.fixed, posterior, a, b), parts))
        if moved <= tol * posterior.shape[1]:
            return iteration, True
    return max_iter, False


def local_confusion(problem: LocalProblem, posterior: np.ndarray) -> np.ndarray:
    """Matrices of every pixel, (raters, classes, classes, pixels) float32, [true, observed], rows sum to 1."""
    n_raters, n_classes, _ = problem.confusion.shape
    matrices = np.empty((n_raters, n_classes, n_classes, posterior.shape[1]), dtype=np.float32)
    for rater in range(n_raters):
        for true in range(n_classes):
            for label in range(n_classes):
                said = _said(problem, rater, label, posterior[true])
                matrices[rater, true, label] = said + problem.shrinkage * problem.confusion[rater, true, label]
            matrices[rater, true] /= matrices[rater, true].sum(axis=0)
    return matrices


def _window_sum(problem: LocalProblem, values: np.ndarray) -> np.ndarray:
    return box_sum(values, problem.shape, problem.window, np.empty_like(values))


def _said(problem: LocalProblem, rater: int, label: int, share: np.ndarray) -> np.ndarray:
    """Pixels that the rater called ``label`` in each window, counted by their ``share`` of a class; (pixels,)."""
    chosen = np.empty_like(share)
    run_parts(lambda a, b: _choose(problem.masks[rater], label, share, chosen, a, b), split_range(len(share), _PART))
    return _window_sum(problem, chosen)


def _add_evidence(problem: LocalProblem, rater: int, true: int, share: np.ndarray, score: np.ndarray) -> None:
    """Add to score (pixels,) the log of what the local matrices' row ``true`` says of the rater's labels."""
    mask, whole = problem.masks[rater], problem.confusion[rater, true]
    given, total = np.zeros_like(score), np.zeros_like(score)
    parts = split_range(len(mask), _PART)
    for label in range(len(whole)):
        said = _said(problem, rater, label, share)
        run_parts(lambda a, b, said=said, label=label: _collect(said, mask, label, given, total, a, b), parts)
    run_parts(lambda a, b: _add_log(given, total, mask, whole, problem.shrinkage, score, a, b), parts)


@njit(nogil=True, cache=True)
def _choose(mask, label, share, out, first, last):  # type: ignore[no-untyped-def]
    for v in range(first, last):
        out[v] = share[v] if mask[v] == label else np.float32(0)


@njit(nogil=True, cache=True)
def _collect(said, mask, label, given, total, first, last):  # type: ignore[no-untyped-def]
    """Add up what was said; keep apart what is like the pixel's own label."""
    for v in range(first, last):
        total[v] += said[v]
        if mask[v] == label:
            given[v] = said[v]


@njit(nogil=True, cache=True)
def _add_log(given, total, mask, whole, shrinkage, score, first, last):  # type: ignore[no-untyped-def]
    for v in range(first, last):
        if mask[v] != MISSING_PIXEL:
            score[v] += np.log((given[v] + shrinkage * whole[mask[v]]) / (total[v] + shrinkage))


@njit(nogil=True, cache=True)
def _normalise(score, fixed, posterior, first, last):  # type: ignore[no-untyped-def]
    """Turn log scores into posteriors, except where these are fixed; give the sum of changes."""
    n_classes = len(score)
    moved = 0.0
    for v in range(first, last):
        if fixed[v]:
            continue
        best = -np.inf
        for k in range(n_classes):
            best = max(best, score[k, v])
        total = 0.0
        for k in range(n_classes):
            score[k, v] = np.exp(score[k, v] - best)
            total += score[k, v]
        for k in range(n_classes):
            new = np.float32(score[k, v] / total)
            moved += 0.5 * abs(new - posterior[k, v])
            posterior[k, v] = new
    return moved
