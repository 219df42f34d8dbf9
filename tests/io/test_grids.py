"""Volumes in boxes of the same grid, against nibabel's reorientation and by hand."""

from __future__ import annotations

import nibabel
import numpy as np
import pytest
from nibabel.orientations import apply_orientation, inv_ornt_aff

from annotruth.errors import InputError
from annotruth.io.grids import Grid, common_grid, place_in


def affine(scale: tuple[float, float, float] = (1, 1, 1), origin: tuple[float, float, float] = (0, 0, 0)) -> np.ndarray:
    made = np.diag([*scale, 1.0])
    made[:3, 3] = origin
    return made


WHOLE = Grid((5, 6, 7), affine((2, 2, 3), (10, 20, 30)))


def test_a_box_is_pasted_where_it_lies() -> None:
    part = Grid((2, 3, 1), affine((2, 2, 3), (12, 24, 36)))
    pasted = place_in(part, WHOLE).paste(np.ones(part.shape, np.uint8), WHOLE.shape)
    assert pasted.sum() == 6
    assert pasted[1:3, 2:5, 2].all()


@pytest.mark.parametrize("ornt", [[[2, 1], [0, -1], [1, 1]], [[0, -1], [1, -1], [2, -1]], [[1, 1], [0, 1], [2, -1]]])
def test_axes_in_another_order_or_direction_are_turned_back(ornt: list[list[int]]) -> None:
    original = np.random.default_rng(0).integers(0, 3, WHOLE.shape).astype(np.uint8)
    turned = apply_orientation(original, np.array(ornt))
    grid = Grid(turned.shape, WHOLE.affine @ inv_ornt_aff(np.array(ornt), original.shape))
    np.testing.assert_array_equal(place_in(grid, WHOLE).paste(turned, WHOLE.shape), original)
    assert nibabel.Nifti1Image(turned, grid.affine).shape == grid.shape


def test_labels_outside_are_refused_but_empty_voxels_are_not() -> None:
    part = Grid((4, 6, 7), affine((2, 2, 3), (6, 20, 30)))
    labels = np.zeros(part.shape, np.uint8)
    labels[2:] = 1
    assert place_in(part, WHOLE).paste(labels, WHOLE.shape).sum() == labels.sum()
    labels[0] = 1
    with pytest.raises(InputError, match="labels lie outside the image"):
        place_in(part, WHOLE).paste(labels, WHOLE.shape)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (affine((2, 2, 2), (10, 20, 30)), "do not fall on"),
        (affine((2, 2, 3), (10.7, 20, 30)), "voxels off the image's grid"),
        (np.zeros((4, 4)), "do not fall on"),
        (np.full((4, 4), np.nan), "do not fall on"),
    ],
)
def test_other_grids_are_refused(other: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        place_in(Grid((2, 2, 2), other), WHOLE)
    with pytest.raises(InputError, match="not sound"):
        place_in(WHOLE, Grid((2, 2, 2), np.zeros((4, 4))))


def test_a_common_grid_holds_all() -> None:
    low = Grid((2, 2, 2), affine((2, 2, 3), (6, 20, 30)))
    high = Grid((1, 9, 1), affine((2, 2, 3), (10, 20, 27)))
    grid = common_grid([WHOLE, low, high])
    assert grid.shape == (7, 9, 8)
    assert grid.affine[:3, 3].tolist() == [6, 20, 27]
    assert grid.spacing == (2, 2, 3)
