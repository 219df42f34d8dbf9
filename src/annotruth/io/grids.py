"""Volumes that lie on the same grid, but not in the same box or order of axes: as segmentation tools crop them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from annotruth.errors import InputError

TOLERANCE = 1e-2
"""In voxels, how far grids may lie apart over the length of a volume: writers round."""
LPS_TO_RAS = np.diag([-1.0, -1.0, 1.0, 1.0])
"""DICOM and NRRD count millimetres to the left and to the back, NIfTI to the right and to the front."""


@dataclass(frozen=True)
class Grid:
    """A volume's place.

    Attributes
    ----------
    shape : (axes) of three
    affine : (4, 4), from voxel numbers to millimetres (right, front, up)
    """

    shape: tuple[int, ...]
    affine: np.ndarray

    @property
    def spacing(self) -> tuple[float, ...]:
        """Millimetres from voxel to voxel along each axis."""
        return tuple(np.linalg.norm(self.affine[:3, :3], axis=0).tolist())


@dataclass(frozen=True)
class Placement:
    """Where a volume lies in another: its axis for each of the other's, which of them are turned round, and where."""

    axes: tuple[int, ...]
    turned: tuple[bool, ...]
    start: tuple[int, ...]

    def paste(self, array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Give an array of the other's shape that is 0 where this one does not reach.

        Labels that would lie outside are refused.
        """
        array = array.transpose(self.axes)
        array = array[tuple(slice(None, None, -1 if turned else 1) for turned in self.turned)]
        result = np.zeros(shape, dtype=array.dtype)
        inner, outer = [], []
        for start, size, whole in zip(self.start, array.shape, shape):
            first, last = max(start, 0), min(start + size, whole)
            outer.append(slice(first, max(first, last)))
            inner.append(slice(first - start, max(first, last) - start))
        result[tuple(outer)] = array[tuple(inner)]
        if np.count_nonzero(result) != np.count_nonzero(array):
            raise InputError(
                "labels lie outside the image. Correct the segmentation, or give the image it was drawn on."
            )
        return result


def place_in(grid: Grid, other: Grid) -> Placement:
    """Find where a grid lies in another, refusing grids whose voxels do not fall on each other.

    Examples
    --------
    >>> whole, part = Grid((9, 9, 5), np.eye(4)), np.eye(4)
    >>> part[:3, 3] = [2, 3, 1]
    >>> place_in(Grid((4, 4, 2), part), whole).start
    (2, 3, 1)
    """
    try:
        across = np.linalg.inv(other.affine) @ grid.affine
    except np.linalg.LinAlgError:
        raise InputError("the volume's place in space is not sound. Export it anew.") from None
    turn = np.rint(across[:3, :3])
    longest = max(*grid.shape, 1)
    is_turn = (np.abs(turn).sum(axis=0) == 1).all() and (np.abs(turn).sum(axis=1) == 1).all()
    if not np.isfinite(across).all() or not is_turn or np.abs(across[:3, :3] - turn).max() * longest > TOLERANCE * 10:
        raise InputError("the segmentation's voxels do not fall on the image's. Resample it to the image's grid.")
    offset = np.rint(across[:3, 3])
    if np.abs(across[:3, 3] - offset).max() > TOLERANCE * 10:
        off = np.abs(across[:3, 3] - offset).max()
        raise InputError(f"the segmentation lies {off:.2g} voxels off the image's grid. Resample it to that grid.")
    axes = tuple(int(np.flatnonzero(row)[0]) for row in turn)
    turned = tuple(bool(row[axis] < 0) for row, axis in zip(turn, axes))
    start = tuple(int(first) - (grid.shape[axis] - 1) * is_back for first, axis, is_back in zip(offset, axes, turned))
    return Placement(axes, turned, start)


def common_grid(grids: Sequence[Grid]) -> Grid:
    """The smallest grid, in the order of axes of the first, that holds all.

    Examples
    --------
    >>> part = np.eye(4)
    >>> part[:3, 3] = [-2, 0, 0]
    >>> common_grid([Grid((4, 4, 2), np.eye(4)), Grid((3, 3, 3), part)]).shape
    (6, 4, 3)
    """
    first = grids[0]
    lowest, highest = np.zeros(3, dtype=int), np.array(first.shape)
    for grid in grids[1:]:
        placed = place_in(grid, first)
        size = np.array([grid.shape[axis] for axis in placed.axes])
        lowest, highest = np.minimum(lowest, placed.start), np.maximum(highest, np.array(placed.start) + size)
    affine = first.affine.copy()
    affine[:3, 3] += affine[:3, :3] @ lowest
    return Grid(tuple((highest - lowest).tolist()), affine)
