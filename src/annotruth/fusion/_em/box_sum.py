"""Sums over a box around every pixel, by running sums along each axis: the cost is the same for every box size."""

from __future__ import annotations

from math import prod

import numpy as np
from numba import njit

from annotruth.parallel.threads import run_parts, split_range

_COLUMNS = 128  # neighbouring columns summed side by side, so that memory is read in order
_ROWS = 8  # rows summed side by side, so that one addition need not wait for the one before


def box_sum(values: np.ndarray, shape: tuple[int, ...], window: tuple[int, ...], spare: np.ndarray) -> np.ndarray:
    """Sum over the box centred on each pixel; what lies outside the grid counts as 0.

    Parameters
    ----------
    values : (pixels,) float32, overwritten
    shape : the pixels' grid, of any dimension
    window : odd side of the box along each axis
    spare : (pixels,) float32 of any content, overwritten

    Returns
    -------
    (pixels,) float32: one of the two arrays given

    Examples
    --------
    >>> ones = np.ones(4, dtype=np.float32)
    >>> box_sum(ones, (4,), (3,), np.empty_like(ones))
    array([2., 3., 3., 2.], dtype=float32)
    """
    for axis, (size, side) in enumerate(zip(shape, window)):
        half = min(side // 2, size)
        before, after = prod(shape[:axis]), prod(shape[axis + 1 :])
        source, target = values.reshape(before, size, after), spare.reshape(before, size, after)
        if after == 1:
            parts = split_range(before, max(_ROWS, 2**16 // size // _ROWS * _ROWS))
            run_parts(lambda a, b, s=source, t=target, h=half: _sum_rows(s, t, h, a, b), parts)
        else:
            per_line = -(-after // _COLUMNS)
            parts = split_range(before * per_line, max(1, 2**16 // (size * min(after, _COLUMNS))))
            run_parts(lambda a, b, s=source, t=target, h=half, n=per_line: _sum_columns(s, t, h, n, a, b), parts)
        values, spare = spare, values
    return values


@njit(nogil=True, cache=True)
def _sum_columns(source, target, half, per_line, first, last):  # type: ignore[no-untyped-def]
    """Sum along the middle axis of (before, size, after), for blocks of columns first … last - 1."""
    _, size, after = source.shape
    total = np.empty(_COLUMNS)
    for block in range(first, last):
        line, left = block // per_line, block % per_line * _COLUMNS
        width = min(_COLUMNS, after - left)
        total[:] = 0.0
        for t in range(half):
            for c in range(width):
                total[c] += source[line, t, left + c]
        for t in range(size):
            if t + half < size:
                for c in range(width):
                    total[c] += source[line, t + half, left + c]
            if t - half - 1 >= 0:
                for c in range(width):
                    total[c] -= source[line, t - half - 1, left + c]
            for c in range(width):
                target[line, t, left + c] = max(total[c], 0.0)


@njit(nogil=True, cache=True)
def _sum_rows(source, target, half, first, last):  # type: ignore[no-untyped-def]
    """Sum along the last axis, for rows first … last - 1 of (rows, size, 1)."""
    size = source.shape[1]
    total = np.empty(_ROWS)
    for block in range(first, last, _ROWS):
        rows = min(_ROWS, last - block)
        total[:] = 0.0
        for t in range(half):
            for r in range(rows):
                total[r] += source[block + r, t, 0]
        for t in range(size):
            for r in range(rows):
                if t + half < size:
                    total[r] += source[block + r, t + half, 0]
                if t - half - 1 >= 0:
                    total[r] -= source[block + r, t - half - 1, 0]
                target[block + r, t, 0] = max(total[r], 0.0)
