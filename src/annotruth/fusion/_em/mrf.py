"""A Markov random field as smoothing prior of the truth: neighbouring pixels tend to be alike (Potts model)."""

from __future__ import annotations

from math import prod

import numpy as np
from numba import njit

from annotruth.parallel.threads import run_parts, split_range

_LINES = 256  # lines of pixels per part


def mean_field(
    posterior: np.ndarray, shape: tuple[int, ...], strength: float, max_sweeps: int = 30, tol: float = 1e-3
) -> tuple[np.ndarray, float]:
    """Smooth posteriors by the mean-field approximation.

    smoothed[k, v] ∝ posterior[k, v] · exp(strength · Σ_neighbours smoothed[k, neighbour])

    Pixels of a chequerboard's two colours are updated in turn, each given the other: the bound below never falls, and
    the result does not depend on the number of threads.

    Parameters
    ----------
    posterior : (classes, pixels) float32 without the field
    shape : the pixels' grid, of any dimension; neighbours share a face
    strength : log odds that a neighbour of a class adds to it
    max_sweeps, tol : stop after so many sweeps, or when no probability moves by more than tol

    Returns
    -------
    smoothed : (classes, pixels) float32
    bound : what the field adds to the lower bound of the log-likelihood, up to a constant

    Examples
    --------
    >>> row = np.array([[0.9, 0.4, 0.9]], dtype=np.float32)
    >>> smoothed, _ = mean_field(np.concatenate([row, 1 - row]), (3,), strength=2.0)
    >>> bool(smoothed[0, 1] > 0.9)
    True
    """
    smoothed = posterior.copy()
    sizes = np.array(shape, dtype=np.int64)
    parts = split_range(prod(shape[:-1]), _LINES)
    for _ in range(max_sweeps):
        moved = 0.0
        for colour in (0, 1):

            def work(first: int, last: int, colour: int = colour) -> float:
                return _update(posterior, smoothed, sizes, strength, colour, first, last)

            moved = max(moved, *run_parts(work, parts))
        if moved <= tol:
            break
    return smoothed, float(sum(run_parts(lambda a, b: _bound(posterior, smoothed, sizes, strength, a, b), parts)))


@njit(nogil=True, cache=True)
def _neighbour_lines(line, sizes, offset):  # type: ignore[no-untyped-def]
    """Fill offset with where the lines beside this one begin, relative to it; give how many, and its colour."""
    count, colour, stride, rest = 0, 0, sizes[-1], line
    for axis in range(len(sizes) - 2, -1, -1):
        place = rest % sizes[axis]
        rest //= sizes[axis]
        colour += place
        if place > 0:
            offset[count] = -stride
            count += 1
        if place < sizes[axis] - 1:
            offset[count] = stride
            count += 1
        stride *= sizes[axis]
    return count, colour % 2


@njit(nogil=True, cache=True)
def _update(posterior, smoothed, sizes, strength, colour, first, last):  # type: ignore[no-untyped-def]
    """Update the pixels of one colour in lines first … last - 1; give the largest change."""
    n_classes, length = len(posterior), sizes[-1]
    offset, score = np.empty(2 * len(sizes), dtype=np.int64), np.empty(n_classes)
    moved = 0.0
    for line in range(first, last):
        n_beside, own = _neighbour_lines(line, sizes, offset)
        for t in range((colour + own) % 2, length, 2):
            v = line * length + t
            best = -np.inf
            for k in range(n_classes):
                beside = 0.0
                if t > 0:
                    beside += smoothed[k, v - 1]
                if t < length - 1:
                    beside += smoothed[k, v + 1]
                for n in range(n_beside):
                    beside += smoothed[k, v + offset[n]]
                score[k] = (np.log(posterior[k, v]) if posterior[k, v] > 0 else -np.inf) + strength * beside
                best = max(best, score[k])
            total = 0.0
            for k in range(n_classes):
                score[k] = np.exp(score[k] - best)
                total += score[k]
            for k in range(n_classes):
                value = np.float32(score[k] / total)
                moved = max(moved, abs(value - smoothed[k, v]))
                smoothed[k, v] = value
    return moved


@njit(nogil=True, cache=True)
def _bound(posterior, smoothed, sizes, strength, first, last):  # type: ignore[no-untyped-def]
    """Σ_pixels Σ_k q (log p - log q) + strength · Σ_neighbours Σ_k q q′, each pair of neighbours counted once."""
    n_classes, length = len(posterior), sizes[-1]
    offset = np.empty(2 * len(sizes), dtype=np.int64)
    total = 0.0
    for line in range(first, last):
        n_beside, _ = _neighbour_lines(line, sizes, offset)
        for t in range(length):
            v = line * length + t
            for k in range(n_classes):
                q, p = np.float64(smoothed[k, v]), np.float64(posterior[k, v])
                if q > 0:
                    total += q * (np.log(p) - np.log(q))
                beside = np.float64(smoothed[k, v + 1]) if t < length - 1 else 0.0
                for n in range(n_beside):
                    if offset[n] > 0:
                        beside += smoothed[k, v + offset[n]]
                total += strength * q * beside
    return total
