"""The rules of labels and images, each with its message."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth.errors import InputError, shorten
from annotruth.validation import finite_image, mask_labels, one_of, same_grid, unique_names, whole_numbers


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float16, np.float64])
def test_whole_numbers_of_any_type_pass(dtype):
    array = whole_numbers(np.array([0, 1], dtype=dtype), "here")
    assert np.issubdtype(array.dtype, np.integer)
    np.testing.assert_array_equal(array, [0, 1])


@pytest.mark.parametrize(
    ("array", "message"),
    [
        ([0.0, 0.25], "here: labels must be whole numbers, found 0.25"),
        ([0.0, np.nan], "here: the mask holds NaN"),
        ([0.0, np.inf], "here: the mask holds NaN or infinite"),
        (["a"], "here: labels must be numbers"),
        ([1j], "here: labels must be numbers"),
    ],
)
def test_other_numbers_do_not(array, message):
    with pytest.raises(InputError, match=message):
        whole_numbers(np.array(array), "here")


@pytest.mark.parametrize("value", [-1, 3, 254, 256, 1000])
def test_labels_outside_the_classes(value):
    with pytest.raises(InputError, match=f"here: label {value} lies outside the classes"):
        mask_labels(np.array([0, value]), 3, "here")


def test_labels_within_the_classes():
    labels = mask_labels(np.array([0.0, 2.0, 255.0]), 3, "here")
    assert labels.dtype == np.uint8
    np.testing.assert_array_equal(labels, [0, 2, 255])
    with pytest.raises(InputError, match="0 to 253 at most"):
        mask_labels(np.array([254]), None, "here")


def test_images_are_finite_float32():
    assert finite_image(np.zeros((1, 2), np.uint8), "here").dtype == np.float32
    with pytest.raises(InputError, match="here: the image holds 2 non-finite values"):
        finite_image(np.array([[np.nan, np.inf, 1.0]]), "here")
    with pytest.raises(InputError, match=r"here: column 0, 2 of its features \(counted from 0\) is NaN or infinity"):
        finite_image(np.array([np.nan, 1.0, np.inf]), "here")


def test_grids_and_names():
    same_grid((2, 3), (2, 3), "here")
    with pytest.raises(InputError, match="here: the mask has size 2×3 but the image has 3×2"):
        same_grid((2, 3), (3, 2), "here")
    with pytest.raises(InputError, match="but the truth has 3×2"):
        same_grid((2, 3), (3, 2), "here", "the truth")
    assert unique_names([1, "b"], "item") == ("1", "b")
    with pytest.raises(InputError, match="named twice: 1"):
        unique_names([1, "1"], "item")
    with pytest.raises(InputError, match=r"Unknown method 'x'\. Known: a, b"):
        one_of("x", ["a", "b"], "method")
    assert shorten(list("abcdefg")) == "a, b, c, d, e and 2 more"
