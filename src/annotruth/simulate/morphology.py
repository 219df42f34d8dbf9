"""Growing, shrinking and cutting objects by amounts that need not be whole pixels, in any number of dimensions."""

from __future__ import annotations

import numpy as np
from scipy import ndimage
from scipy.special import ndtr

WOBBLE_PIXELS = 2.0
"""Pixels over which a hand-drawn line keeps to one side of the line that was meant."""


def smooth_field(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Draw a smooth random field (*shape) whose values spread evenly over (0, 1)."""
    field = ndimage.gaussian_filter(rng.standard_normal(shape, dtype=np.float32), WOBBLE_PIXELS)
    field -= field.mean()
    return np.clip(ndtr(field / (field.std() or 1.0)), 1e-6, 1.0)


def grow(inside: np.ndarray, radius: float, field: np.ndarray) -> np.ndarray:
    """Dilate an object by a ball whose radius need not be a whole number of pixels.

    Parameters
    ----------
    inside : bool (*spatial), the object
    radius : in pixels; whole radii give the usual dilation by a disk or ball
    field : (*spatial) in (0, 1], says where a line between two pixels falls; with the same field, a larger radius
        always gives a larger object

    Returns
    -------
    bool (*spatial), containing ``inside``
    """
    if radius <= 0 or not inside.any():
        return inside.copy()
    return inside | (_between_pixels(ndimage.distance_transform_edt(~inside), radius, field) <= radius)


def shrink(inside: np.ndarray, outside: np.ndarray, radius: float, field: np.ndarray) -> np.ndarray:
    """Erode an object from its border with ``outside``; radius 1 is erosion by a cross. See :func:`grow`."""
    if radius <= 0 or not outside.any():
        return inside.copy()
    return inside & (_between_pixels(ndimage.distance_transform_edt(~outside), radius, field) > radius)


def cut(inside: np.ndarray, width: float, reach: float, rng: np.random.Generator, count: int) -> np.ndarray:
    """Find thin cuts across an object: bool (*spatial), the pixels to remove.

    Each cut goes through a random point of the object's middle line, at right angles to the way the object runs
    there, and ends ``reach`` pixels outside the object.
    """
    cuts = np.zeros(inside.shape, dtype=bool)
    if not inside.any():
        return cuts
    depth = ndimage.distance_transform_edt(inside)
    middle = np.argwhere(inside & (depth == ndimage.maximum_filter(depth, size=3)))
    for point in middle[rng.integers(len(middle), size=count)]:
        half = depth[tuple(point)]
        along = _direction(inside, point, 2 * half + 2)
        box, offset = _surroundings(inside.shape, point, half + reach)
        across = sum(part * step for part, step in zip(along, offset))
        cuts[box] |= (np.abs(across) < width / 2) & (sum(step**2 for step in offset) <= (half + reach) ** 2)
    return cuts


def _direction(inside: np.ndarray, point: np.ndarray, radius: float) -> np.ndarray:
    """Give the unit vector along which the object runs near a point: the main axis of its pixels there."""
    box, offset = _surroundings(inside.shape, point, radius)
    pixels = np.argwhere(inside[box] & (sum(step**2 for step in offset) <= radius**2))
    spread = pixels - pixels.mean(axis=0)
    return np.linalg.eigh(spread.T @ spread)[1][:, -1]


def _surroundings(
    shape: tuple[int, ...], point: np.ndarray, radius: float
) -> tuple[tuple[slice, ...], tuple[np.ndarray, ...]]:
    """Give the box around a point, cut off at the image's edge, and each axis' offsets from the point in it."""
    reach = int(np.ceil(radius))
    box = tuple(slice(max(p - reach, 0), min(p + reach + 1, size)) for p, size in zip(point, shape))
    return box, np.ix_(*(np.arange(part.start, part.stop) - p for part, p in zip(box, point)))


def _between_pixels(distance: np.ndarray, radius: float, field: np.ndarray) -> np.ndarray:
    """Spread distances, which take few values on a grid, over the gap below each, so that radii act smoothly."""
    near = (distance > 0) & (distance < radius + 1)
    levels, level = np.unique(distance[near], return_inverse=True)
    if not len(levels):
        return distance
    below = np.concatenate([[0.0], levels[:-1]])[level]
    spread = distance.copy()
    spread[near] = np.minimum(below + (levels[level] - below) * field[near], levels[level])
    return spread
