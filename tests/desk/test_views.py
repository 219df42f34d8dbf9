"""How cases are laid out."""

from __future__ import annotations

import nibabel
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotruth.data.annotations import Annotations
from annotruth.desk.views import View, picture_of, view_of


@given(st.permutations([0, 1, 2]), st.sets(st.integers(0, 2)))
def test_what_is_turned_turns_back(axes, flipped):
    view, volume = View(tuple(axes), tuple(flipped)), np.arange(24).reshape(2, 3, 4)
    assert (view.turn_back(view.turn(volume)) == volume).all()
    assert (view.turn(np.stack([volume, volume]))[1] == view.turn(volume)).all()


def test_slices_run_along_the_shortest_axis_and_pixels_keep_their_shape():
    annotations = Annotations.from_masks(np.zeros((1, 1, 8, 5, 9), dtype=np.uint8), spacing=(2.0, 3.0, 1.0))
    view = view_of(annotations, 0, (8, 5, 9))
    assert view.axes == (1, 0, 2)
    assert view.aspect == 2.0


@pytest.mark.parametrize("codes", ["RAS", "LPS", "LAS", "PIR", "SAL"])
def test_nifti_volumes_are_upright_however_they_are_stored(tmp_path, codes):
    """A point in front, on the patient's left and above the middle, is shown there: axial slices, as a radiologist."""
    shape = {"R": 20, "A": 16, "S": 6}
    axis = {"L": "R", "R": "R", "A": "A", "P": "A", "S": "S", "I": "S"}
    stored = np.zeros([shape[axis[code]] for code in codes], dtype=np.uint8)
    # voxel of the point by direction: left (18 of 20 towards the left), front (14 of 16), third slice from below
    place = {"R": 1, "L": 18, "A": 14, "P": 1, "S": 2, "I": 3}
    stored[tuple(place[code] for code in codes)] = 1
    affine = np.zeros((4, 4))
    for column, code in enumerate(codes):
        affine["RAS".index(axis[code]), column] = 1 if code in "RAS" else -1
    affine[3, 3] = 1
    path = tmp_path / "a.nii.gz"
    nibabel.save(nibabel.Nifti1Image(stored, affine), path)
    annotations = Annotations(
        kind="masks", items=["a"], raters=["r"], classes=["0", "1"], masks=[stored[None]], sources=[path]
    )
    shown = view_of(annotations, 0, stored.shape).turn(stored)
    assert shown.shape == (6, 16, 20)
    slice_, row, column = np.argwhere(shown)[0]
    assert row < 8, "front is on top"
    assert column > 10, "left is on the right"
    assert slice_ in (2, 3)


def test_pictures_take_few_bytes():
    grey = picture_of(np.arange(12.0).reshape(1, 3, 4), View((0, 1)))
    assert grey.pixels.dtype == np.uint8
    assert (grey.pixels[0, 0] == np.arange(12).reshape(3, 4)).all()
    colour = picture_of(np.arange(36.0).reshape(3, 3, 4), View((0, 1)))
    assert colour.is_colour
    assert colour.pixels.shape == (1, 1, 3, 4, 3)
    deep = picture_of(np.linspace(-1000, 3000, 12).reshape(1, 3, 4), View((0, 1)))
    assert deep.pixels.dtype == np.uint16
    values = deep.low + deep.pixels / 65535 * (deep.high - deep.low)
    assert np.abs(values.reshape(-1) - np.linspace(-1000, 3000, 12)).max() < 0.05


def test_a_picture_of_one_value_can_be_shown():
    flat = picture_of(np.full((1, 3, 4), 7.5), View((0, 1)))
    assert flat.window[1] > flat.window[0]
    assert flat.high > flat.low
