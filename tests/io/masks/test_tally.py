"""What is counted in masks, over many files."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import ndimage

from annotruth.io.masks.planes import Planes
from annotruth.io.masks.tally import Tally, carries_mask


def test_values_that_fill_areas_are_told_from_those_along_edges():
    mask = np.zeros((20, 20), dtype=np.uint8)
    mask[5:15, 5:15] = 90
    mask[6:14, 6:14] = 255
    tally = Tally()
    tally.add(Planes(mask[None]), "here")
    assert tally.values.clear == [0, 255]
    assert tally.values.all[90] == 36
    assert tally.values.total == 400


def test_grey_values_among_colours_are_colours():
    tally = Tally()
    tally.add(Planes(np.full((1, 2, 2), 255)), "here")
    tally.add(Planes(np.arange(12).reshape(3, 2, 2), coloured=True), "here")
    assert tally.all_colours().all[0xFFFFFF] == 4
    assert tally.coloured == 1


def test_transparency_over_several_colours_is_no_mask():
    alpha = np.array([[0, 255], [255, 255]])
    assert carries_mask(Planes(np.zeros((3, 2, 2)), alpha=alpha))
    assert not carries_mask(Planes(np.arange(4).reshape(1, 2, 2), alpha=alpha))
    assert not carries_mask(Planes(np.zeros((1, 2, 2)), alpha=np.full((2, 2), 9)))


@given(
    hnp.arrays(np.uint8, hnp.array_shapes(min_dims=2, max_dims=3, min_side=1, max_side=7), elements=st.integers(0, 2))
)
def test_flat_pixels_are_those_whose_whole_neighbourhood_is_equal(plane: np.ndarray) -> None:
    tally = Tally()
    tally.add(Planes(plane[None]), "here")
    low = ndimage.minimum_filter(plane, 3, mode="constant", cval=0)
    flat = (low == plane) & (ndimage.maximum_filter(plane, 3, mode="constant", cval=0) == plane)
    inner = np.zeros(plane.shape, dtype=bool)
    inner[(slice(1, -1),) * plane.ndim] = True
    for value in range(3):
        assert tally.values.flat[value] == (flat & inner & (plane == value)).sum()
        assert tally.values.all[value] == (plane == value).sum()
