"""Growing, shrinking and cutting: whole radii against scikit-image, others by nesting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage
from skimage import morphology

from annotruth.simulate.morphology import cut, grow, shrink, smooth_field


def blob(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """A random object with smooth borders."""
    return smooth_field(shape, np.random.default_rng(seed)) > 0.6


@pytest.mark.parametrize("radius", [1, 2, 3])
@pytest.mark.parametrize(("shape", "ball"), [((32, 30), morphology.disk), ((14, 12, 13), morphology.ball)])
def test_whole_radii_are_the_usual_dilation_and_erosion(radius, shape, ball):
    inside = blob(shape, 3)
    field = smooth_field(shape, np.random.default_rng(0))
    np.testing.assert_array_equal(grow(inside, radius, field), ndimage.binary_dilation(inside, ball(radius)))
    # scipy's erosion takes what lies outside the image for background unless told otherwise; we do not
    eroded = ndimage.binary_erosion(inside, ball(radius), border_value=1)
    np.testing.assert_array_equal(shrink(inside, ~inside, radius, field), eroded)


def test_radius_one_erodes_by_a_cross():
    inside = np.ones((5, 5), dtype=bool)
    inside[0, 0] = False
    eroded = shrink(inside, ~inside, 1, np.ones((5, 5)))
    assert eroded[1, 1]
    assert not eroded[0, 1]
    assert not eroded[1, 0]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.floats(0, 4), st.floats(0, 4), st.sampled_from([(20, 18), (9, 8, 10)]))
def test_larger_radii_give_larger_changes(seed, one, other, shape):
    inside, field = blob(shape, seed), smooth_field(shape, np.random.default_rng(seed + 1))
    small, large = sorted((one, other))
    assert (grow(inside, small, field) <= grow(inside, large, field)).all()
    assert (inside <= grow(inside, small, field)).all()
    assert (shrink(inside, ~inside, large, field) <= shrink(inside, ~inside, small, field)).all()
    assert (shrink(inside, ~inside, small, field) <= inside).all()


def test_radii_between_whole_pixels_change_the_area_smoothly():
    inside = blob((128, 128), 0)
    field = smooth_field((128, 128), np.random.default_rng(1))
    radii = np.linspace(0, 2, 21)
    areas = np.array([grow(inside, radius, field).sum() for radius in radii])
    steps = np.diff(areas)
    assert (steps > 0).all()
    assert steps.max() < 4 * steps.mean()


def test_nothing_and_everything():
    nothing, field = np.zeros((6, 6), dtype=bool), np.ones((6, 6))
    assert not grow(nothing, 2, field).any()
    assert shrink(~nothing, nothing, 2, field).all()
    assert not cut(nothing, 2, 1, np.random.default_rng(0), count=3).any()


def test_a_cut_severs_a_stroke_across():
    stroke = np.zeros((21, 40), dtype=bool)
    stroke[9:12, 2:38] = True
    rng = np.random.default_rng(0)
    pieces = stroke & ~cut(stroke, width=2, reach=1, rng=rng, count=1)
    assert ndimage.label(pieces)[1] == 2
    assert 3 <= stroke.sum() - pieces.sum() <= 12


def test_a_cut_severs_a_rod_in_three_dimensions():
    rod = np.zeros((9, 30, 9), dtype=bool)
    rod[3:6, 2:28, 3:6] = True
    for seed in range(20):
        removed = cut(rod, width=2, reach=1, rng=np.random.default_rng(seed), count=1)
        assert rod.sum() > (rod & ~removed).sum() >= rod.sum() - 27
    assert ndimage.label(rod & ~removed)[1] == 2
