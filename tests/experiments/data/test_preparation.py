"""Halving, tiling and standardising, against plain loops."""

import numpy as np
import pytest

from annotruth.experiments.data.preparation import cut_tiles, halve, standardise


def test_halves_are_means_of_two_by_two_whatever_stands_before_them():
    pictures = np.random.default_rng(0).random((2, 3, 6, 4)).astype(np.float32)
    expected = [[[[p[2 * y : 2 * y + 2, 2 * x : 2 * x + 2].mean() for x in range(2)] for y in range(3)] for p in item]
                for item in pictures]  # fmt: skip
    np.testing.assert_allclose(halve(pictures), expected, rtol=1e-6)
    assert halve(pictures).dtype == np.float32


def test_tiles_of_a_picture_stay_together_and_what_does_not_fill_one_is_cut_off():
    pictures = np.arange(2 * 3 * 5 * 4).reshape(2, 3, 5, 4)
    tiles = cut_tiles(pictures, 2)
    assert tiles.shape == (8, 3, 2, 2)
    np.testing.assert_array_equal(tiles[5], pictures[1, :, :2, 2:])
    np.testing.assert_array_equal(tiles[2], pictures[0, :, 2:4, :2])


def test_an_even_picture_is_left_without_deviation():
    pictures = np.stack([np.full((4, 4), 7), np.arange(16).reshape(4, 4)])
    made = standardise(pictures)
    assert not made[0].any()
    assert made[1].mean() == pytest.approx(0, abs=1e-6)
    assert made[1].std() == pytest.approx(1)
