"""Several files as one mask, and masks of another size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotruth.errors import InputError
from annotruth.io.masks.joining import fit_size, size_factor, split_class


def test_names_are_split_at_the_longest_case():
    cases = ["1", "12", "left eye"]
    assert split_class("12_cup", cases) == ("12", "cup")
    assert split_class("cup-12", cases) == ("12", "cup")
    assert split_class("left eye optic disc", cases) == ("left eye", "optic disc")
    assert split_class("123", cases) is None
    assert split_class("12_", cases) is None


@given(st.integers(2, 4), st.integers(1, 5), st.integers(1, 5))
def test_a_smaller_mask_is_repeated_and_a_larger_one_brought_back(factor, height, width):
    mask = np.random.default_rng(0).integers(0, 3, (height, width)).astype(np.uint8)
    shape = (factor * height, factor * width)
    large = fit_size(mask, shape, "here", resize=True)
    np.testing.assert_array_equal(large, np.kron(mask, np.ones((factor, factor), dtype=np.uint8)))
    np.testing.assert_array_equal(fit_size(large, mask.shape, "here", resize=True), mask)
    assert size_factor(mask.shape, shape) == factor


def test_of_a_block_the_most_frequent_class_counts():
    mask = np.array([[1, 1, 0, 2], [1, 0, 2, 2]], dtype=np.uint8)
    np.testing.assert_array_equal(fit_size(mask, (1, 2), "here", resize=True), [[1, 2]])


def test_sizes_are_not_changed_unasked_nor_by_a_broken_factor():
    mask = np.zeros((4, 6), dtype=np.uint8)
    assert fit_size(mask, (4, 6), "here") is mask
    with pytest.raises(InputError, match=r"4×6 but the image has 8×12: it is 2 times smaller.*--resize"):
        fit_size(mask, (8, 12), "here")
    with pytest.raises(InputError, match="it is 2 times larger"):
        fit_size(mask, (2, 3), "here")
    with pytest.raises(InputError, match="no whole number lies between"):
        fit_size(mask, (8, 6), "here", resize=True)
