"""Polygons, boxes, ellipses and run lengths as pixels.

Coordinates are (x, y) in pixels from the image's upper left corner, as labelling tools give them: the first pixel's
centre is (0.5, 0.5). A pixel is inside a shape if its centre is. What lies outside the image is cut off.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from annotruth.errors import InputError

MAX_PIXELS = 2**31
"""Of one image: more than any labelling tool shows, and an array that could not be held anyway."""


def polygon_pixels(rings: Sequence[np.ndarray], shape: tuple[int, int]) -> tuple[tuple[slice, slice], np.ndarray]:
    """Fill rings, by the even-odd rule, so that a ring inside another is a hole.

    Parameters
    ----------
    rings : each (points, 2), closed or not
    shape : (height, width) of the image

    Returns
    -------
    The part of the image that the rings lie in, and which of its pixels are inside: bool, of the size of that part.

    Examples
    --------
    >>> window, inside = polygon_pixels([np.array([[1, 1], [4, 1], [4, 3], [1, 3]])], (5, 6))
    >>> window, inside.sum()
    ((slice(1, 3, None), slice(1, 4, None)), np.int64(6))
    """
    if not rings:
        raise InputError("a polygon has no ring. Correct or remove it.")
    rings = [_finite_points(ring) for ring in rings]
    start = np.concatenate(rings)
    end = np.concatenate([np.roll(ring, -1, axis=0) for ring in rings])
    top, left = (int(np.clip(np.ceil(start[:, axis].min() - 0.5), 0, shape[1 - axis])) for axis in (1, 0))
    bottom, right = (int(np.clip(np.ceil(start[:, axis].max() - 0.5), 0, shape[1 - axis])) for axis in (1, 0))
    window = (slice(top, max(top, bottom)), slice(left, max(left, right)))
    if bottom <= top or right <= left:
        return window, np.zeros((max(bottom - top, 0), max(right - left, 0)), dtype=bool)
    # Rows whose centre an edge passes: from the one below its upper end to the one above its lower end.
    upper, lower = np.minimum(start[:, 1], end[:, 1]), np.maximum(start[:, 1], end[:, 1])
    first = np.clip(np.ceil(upper - 0.5), top, bottom).astype(np.int64)
    last = np.clip(np.ceil(lower - 0.5), top, bottom).astype(np.int64)
    count = last - first
    edge = np.repeat(np.arange(len(start)), count)
    row = np.arange(len(edge)) - np.repeat(np.cumsum(count) - count, count) + first[edge]
    slope = (end[edge, 0] - start[edge, 0]) / (end[edge, 1] - start[edge, 1])
    crossing = start[edge, 0] + (row + 0.5 - start[edge, 1]) * slope
    column = np.clip(np.ceil(crossing - 0.5), left, right).astype(np.int64)
    toggles = np.bincount(
        (row - top) * (right - left + 1) + column - left, minlength=(bottom - top) * (right - left + 1)
    ).reshape(bottom - top, right - left + 1)
    return window, (np.cumsum(toggles, axis=1)[:, :-1] % 2).astype(bool)


def _finite_points(points: np.ndarray) -> np.ndarray:
    points = np.asarray(points, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2 or len(points) < 3:
        raise InputError("a polygon needs three points (x, y) or more. Correct or remove it.")
    if not np.isfinite(points).all():
        raise InputError("a polygon's points are not all numbers. Correct or remove it.")
    return points


def ellipse_ring(centre: tuple[float, float], radii: tuple[float, float], angle: float = 0.0) -> np.ndarray:
    """Points (points, 2) of an ellipse, so many that none lies more than a hundredth of a pixel off.

    Parameters
    ----------
    angle : degrees by which it is turned, clockwise as one sees it (y grows downwards)

    Examples
    --------
    >>> ellipse_ring((5, 5), (3, 2))[0]
    array([8., 5.])
    """
    largest = max(map(abs, radii), default=0.0)
    if not np.isfinite([*centre, *radii, angle]).all() or min(radii) < 0:
        raise InputError("an ellipse's centre, radii and angle are not sound numbers. Correct or remove it.")
    count = int(np.clip(np.ceil(np.pi / np.sqrt(2 * 0.01 / max(largest, 0.1))), 16, 2048))
    turn = np.linspace(0, 2 * np.pi, count, endpoint=False)
    points = np.stack([radii[0] * np.cos(turn), radii[1] * np.sin(turn)], axis=1)
    return points @ _rotation(angle).T + np.asarray(centre, dtype=np.float64)


def box_ring(
    left: float, top: float, right: float, bottom: float, angle: float = 0.0, about: object = None
) -> np.ndarray:
    """Corners (4, 2) of a box, turned clockwise by degrees about its centre, or about a point (x, y).

    Examples
    --------
    >>> box_ring(0, 0, 2, 1).tolist()
    [[0.0, 0.0], [2.0, 0.0], [2.0, 1.0], [0.0, 1.0]]
    """
    if not np.isfinite([left, top, right, bottom, angle]).all():
        raise InputError("a box's corners and angle are not sound numbers. Correct or remove it.")
    corners = np.array([[left, top], [right, top], [right, bottom], [left, bottom]], dtype=np.float64)
    if not angle:
        return corners
    pivot = corners.mean(axis=0) if about is None else np.asarray(about, dtype=np.float64)
    return (corners - pivot) @ _rotation(angle).T + pivot


def _rotation(angle: float) -> np.ndarray:
    """Of degrees clockwise, where y grows downwards."""
    turn = np.radians(angle)
    return np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
