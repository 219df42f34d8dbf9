"""Shapes as pixels, against matplotlib's test of points and against areas known from geometry."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.path import Path as Outline

from annotruth.errors import InputError
from annotruth.io.rasterise import box_ring, ellipse_ring, polygon_pixels


def fill(rings: list[np.ndarray], shape: tuple[int, int]) -> np.ndarray:
    mask = np.zeros(shape, dtype=bool)
    window, inside = polygon_pixels(rings, shape)
    mask[window] = inside
    return mask


def centres(shape: tuple[int, int]) -> np.ndarray:
    rows, columns = np.indices(shape)
    return np.stack([columns.ravel() + 0.5, rows.ravel() + 0.5], axis=1)


@given(st.integers(0, 10**6))
def test_a_pixel_is_inside_if_its_centre_is(seed: int) -> None:
    """A star around a point, so that it does not cross itself: both rules then agree, off the edges themselves."""
    rng = np.random.default_rng(seed)
    angles = np.sort(rng.uniform(0, 2 * np.pi, 9))
    ring = rng.uniform(-3, 20, 2) + np.stack([np.cos(angles), np.sin(angles)], 1) * rng.uniform(1, 12, (9, 1))
    expected = Outline(np.concatenate([ring, ring[:1]])).contains_points(centres((16, 19))).reshape(16, 19)
    np.testing.assert_array_equal(fill([ring], (16, 19)), expected)


def test_whole_boxes_hold_their_pixels_and_neighbours_share_none() -> None:
    left, right = fill([box_ring(0, 0, 3, 5)], (5, 8)), fill([box_ring(3, 0, 8, 5)], (5, 8))
    assert left.sum() == 15
    assert not (left & right).any()
    assert (left | right).all()


def test_a_ring_in_a_ring_is_a_hole() -> None:
    assert fill([box_ring(0, 0, 6, 6), box_ring(2, 2, 4, 4)], (6, 6)).sum() == 32


def test_what_lies_outside_is_cut_off() -> None:
    assert fill([box_ring(-100, -100, 2, 2)], (6, 6)).sum() == 4
    assert fill([box_ring(4, 4, 1e9, 1e9)], (6, 6)).sum() == 4
    assert fill([box_ring(50, 50, 60, 60)], (6, 6)).sum() == 0
    assert fill([box_ring(-60, -60, -50, -50)], (6, 6)).sum() == 0


def test_ellipses_have_their_area_and_turn_clockwise() -> None:
    flat = fill([ellipse_ring((60, 50), (40, 20))], (100, 120))
    assert flat.sum() == pytest.approx(np.pi * 40 * 20, rel=0.01)
    turned = fill([ellipse_ring((60, 50), (40, 10), 45)], (100, 120))
    assert turned[50 + 20, 60 + 20]  # to the right and downwards
    assert not turned[50 - 20, 60 + 20]
    quarter = fill([box_ring(20, 45, 60, 55, 90)], (100, 120))
    assert quarter.sum() == 400
    assert quarter[35, 40]
    about = fill([box_ring(20, 45, 60, 55, 90, (20, 45))], (100, 120))
    assert about[80, 15]


@pytest.mark.parametrize("ring", [[[0, 0], [1, 1]], [[0, 0], [1, np.nan], [2, 2]], [[1, 2, 3]] * 4])
def test_bad_polygons_are_refused(ring: list[list[float]]) -> None:
    with pytest.raises(InputError, match="a polygon"):
        polygon_pixels([np.array(ring)], (5, 5))


def test_bad_boxes_and_ellipses_are_refused() -> None:
    with pytest.raises(InputError, match="a polygon has no ring"):
        polygon_pixels([], (5, 5))
    with pytest.raises(InputError, match="a box's corners"):
        box_ring(0, 0, np.inf, 1)
    for radii in ((-1.0, 2.0), (np.inf, 2.0)):
        with pytest.raises(InputError, match="an ellipse"):
            ellipse_ring((0, 0), radii)
