"""Files of any format: suffixes, and grids that differ, of which the message says in what and by how much."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth.errors import InputError
from annotruth.io import load
from annotruth.io.files import case_of, same_place, suffix_of
from annotruth.io.formats.header import Header

SPACING = np.diag([1.0, 1.0, 2.5, 1.0])


def _moved(*by):
    affine = SPACING.copy()
    affine[:3, 3] = by
    return affine


@pytest.mark.parametrize(
    ("affine", "message"),
    [
        (np.diag([1.0, 1.0, 3.0, 1.0]), r"spacing along axis 3 is 3 mm instead of 2\.5 mm"),
        (np.diag([-1.0, -1.0, 2.5, 1.0]), r"orientation is LPS instead of RAS"),
        (_moved(0, 0, 7.5), r"origin is \(0, 0, 7\.5\) instead of \(0, 0, 0\), 7\.5 mm apart"),
        (np.diag([2.0, -1.0, 2.5, 1.0]), r"axis 1 is 2 mm instead of 1 mm; orientation is RPS instead of RAS"),
    ],
)
def test_other_geometry_is_described(tmp_path, put, affine, message):
    put(tmp_path / "images/a.nii.gz", np.zeros((3, 4, 5), np.int16), SPACING)
    put(tmp_path / "raters/ann/a.nii.gz", np.ones((3, 4, 5), np.uint8), affine)
    with pytest.raises(InputError, match=r"ann.a\.nii\.gz \(case a, rater ann\): the mask does not lie.*" + message):
        load(tmp_path)


def test_a_turned_grid(tmp_path, put):
    tilted = SPACING.copy()
    angle = np.radians(5)
    tilted[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    put(tmp_path / "images/a.nii.gz", np.zeros((3, 4, 5), np.int16), SPACING)
    put(tmp_path / "raters/ann/a.nii.gz", np.ones((3, 4, 5), np.uint8), tilted)
    with pytest.raises(InputError, match=r"axis 1 is turned by 5°; axis 2 is turned by 5°"):
        load(tmp_path)


@pytest.mark.parametrize("entry", [np.nan, 0.0])
def test_broken_affines_are_described_too(entry):
    broken = SPACING.copy()
    broken[0, 0] = entry
    with pytest.raises(InputError, match="here: the mask does not lie where the image lies: "):
        same_place(Header((3, 4, 5), broken), Header((3, 4, 5), SPACING), "the image", "here")


def test_rounding_and_formats_without_geometry_pass(tmp_path, put):
    put(tmp_path / "images/a.nii.gz", np.zeros((3, 4, 5), np.int16), SPACING)
    put(
        tmp_path / "raters/ann/a.nii.gz",
        np.ones((3, 4, 5), np.uint8),
        SPACING + 4e-4 * (np.arange(16) < 12).reshape(4, 4),
    )
    put(tmp_path / "raters/bob/a.npy", np.ones((3, 4, 5), np.uint8))
    assert load(tmp_path).masks.shape == (1, 2, 3, 4, 5)


def test_without_images_masks_are_held_against_the_first(tmp_path, put):
    put(tmp_path / "raters/ann/a.nii.gz", np.ones((3, 4, 5), np.uint8), SPACING)
    put(tmp_path / "raters/bob/a.nii.gz", np.ones((3, 4, 5), np.uint8), _moved(1, 0, 0))
    with pytest.raises(InputError, match=r"rater bob\): the mask does not lie where the mask .*ann.a\.nii\.gz lies"):
        load(tmp_path)
    put(tmp_path / "raters/bob/a.nii.gz", np.ones((3, 4, 4), np.uint8), SPACING)
    with pytest.raises(
        InputError, match=r"rater bob\): the mask has size 3×4×4 but the mask .*ann.a\.nii\.gz has 3×4×5"
    ):
        load(tmp_path)


def test_suffixes_are_known_in_any_case_and_the_longest_counts():
    assert suffix_of("a.nii.gz") == ".nii.gz"
    assert suffix_of("x/A.B.TIFF") == ".TIFF"
    assert case_of("x/1.2.840.NII.GZ") == "1.2.840"
    assert suffix_of("a.psd") is None
    assert suffix_of(".png") is None
