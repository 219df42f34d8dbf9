"""Exact Euclidean distances to the nearest pixel of a label, axis by axis, each line in time linear in its length."""

from __future__ import annotations

from math import prod

import numpy as np
from numba import njit

from annotruth.parallel.threads import run_parts, split_range

_PART = 2**15  # pixels per part


def squared_distance(mask: np.ndarray, label: int, shape: tuple[int, ...], spacing: tuple[float, ...]) -> np.ndarray:
    """Squared distance (pixels,) float64 of every pixel to the nearest one of a label; infinite if there is none.

    Parameters
    ----------
    mask : (pixels,) uint8
    shape : the pixels' grid, of any dimension
    spacing : from pixel to pixel along each axis

    Examples
    --------
    >>> squared_distance(np.array([1, 0, 0, 1, 1], dtype=np.uint8), 1, (5,), (1.0,))
    array([0., 1., 1., 0., 0.])
    """
    found = np.where(mask == label, 0.0, np.inf)
    for axis, size in enumerate(shape):
        stride, lines = prod(shape[axis + 1 :]), prod(shape) // max(size, 1)
        run_parts(
            lambda a, b, n=size, s=stride, w=spacing[axis]: _along(found, n, s, w, a, b),
            split_range(lines, max(1, _PART // max(size, 1))),
        )
    return found


@njit(nogil=True, cache=True)
def _along(found, size, stride, width, first, last):  # type: ignore[no-untyped-def]
    """Replace lines first … last - 1 by min over t' of found[t'] + (width (t - t'))²: a lower envelope of parabolas."""
    place, edge, value = np.empty(size, dtype=np.int64), np.empty(size + 1), np.empty(size)
    for line in range(first, last):
        start = line // stride * stride * size + line % stride
        top = -1
        for t in range(size):
            value[t] = found[start + t * stride]
            if value[t] == np.inf:
                continue
            here = value[t] + (width * t) ** 2
            cut = -np.inf
            while top >= 0:
                p = place[top]
                cut = (here - value[p] - (width * p) ** 2) / (2 * width * width * (t - p))
                if cut > edge[top]:
                    break
                top -= 1
            top += 1
            place[top] = t
            edge[top] = -np.inf if top == 0 else cut
        if top < 0:
            continue
        edge[top + 1] = np.inf
        k = 0
        for t in range(size):
            while edge[k + 1] < t:
                k += 1
            found[start + t * stride] = value[place[k]] + (width * (t - place[k])) ** 2
