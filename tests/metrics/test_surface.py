"""HD95 and surface Dice against MONAI, all pairs of surface pixels, and numbers worked out by hand."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from annotruth.errors import InputError
from annotruth.metrics import (
    hd95,
    hd95_per_item,
    surface_dice,
    surface_dice_per_item,
    surface_scores,
)

seeds = st.integers(0, 10_000)
FLAT, DEEP = (2, 12, 15), (2, 7, 9, 8)
SPACING = {2: (0.7, 1.3), 3: (0.5, 1.1, 3.0)}


def blobs(seed: int, n_classes: int, shape: tuple[int, ...]) -> np.ndarray:
    """Masks (items, *spatial) with a box of each class, which may lie at the rim and cover one another; and specks."""
    rng = np.random.default_rng(seed)
    masks = np.zeros(shape, dtype=np.uint8)
    for item in masks:
        for label in range(1, n_classes):
            start = [rng.integers(0, size - 2) for size in item.shape]
            item[tuple(slice(s, s + rng.integers(2, 6)) for s in start)] = label
            item[tuple(rng.integers(0, size) for size in item.shape)] = label
    return masks


def one_hot(masks: np.ndarray, n_classes: int):
    import torch

    return torch.from_numpy(np.stack([masks == label for label in range(n_classes)], axis=1).astype(np.float32))


@pytest.mark.parametrize("shape", [FLAT, DEEP])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("in_mm", [False, True])
def test_scores_are_monais(shape, n_classes, in_mm):
    from monai.metrics import compute_hausdorff_distance, compute_surface_dice

    spacing = SPACING[len(shape) - 1] if in_mm else None
    for seed in range(8):
        a, b = blobs(seed, n_classes, shape), blobs(seed + 100, n_classes, shape)
        pair = one_hot(a, n_classes), one_hot(b, n_classes)
        here = np.array([[(m == c).any() for c in range(1, n_classes)] for m in a])
        here &= np.array([[(m == c).any() for c in range(1, n_classes)] for m in b])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of empty masks, which are compared below
            distance = compute_hausdorff_distance(*pair, percentile=95, spacing=spacing).numpy()
            share = compute_surface_dice(*pair, [1.5] * (n_classes - 1), spacing=spacing).numpy()
        ours = surface_scores(a, b, n_classes, spacing, tolerance=1.5)
        np.testing.assert_allclose(ours.hd95[:, 1:][here], distance[here], rtol=1e-5)
        np.testing.assert_allclose(ours.surface_dice[:, 1:][here], share[here], rtol=1e-6)
        assert here.any()


def test_empty_masks_get_numbers_where_monai_gives_none():
    from monai.metrics import compute_hausdorff_distance, compute_surface_dice

    there, empty = np.zeros((1, 3, 4), dtype=np.uint8), np.zeros((1, 3, 4), dtype=np.uint8)
    there[0, 1, 1] = 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for a, b, monais_share in [(there, empty, 0), (empty, empty, np.nan)]:
            pair = one_hot(a, 2), one_hot(b, 2)
            assert not np.isfinite(compute_hausdorff_distance(*pair, percentile=95).item())
            np.testing.assert_equal(compute_surface_dice(*pair, [1.0]).item(), monais_share)
    assert hd95(there, empty) == hd95(empty, there) == 5  # the diagonal of 3 × 4
    assert hd95(there, empty, spacing=(2.0, 2.0)) == 10
    assert surface_dice(there, empty) == surface_dice(empty, there) == 0
    assert hd95(empty, empty) == 0
    assert surface_dice(empty, empty) == 1


def test_a_lost_tumour_costs_what_it_costs_in_brats():
    there = np.zeros((1, 240, 240, 155), dtype=np.uint8)
    there[0, 100, 100, 100] = 1
    assert hd95(np.zeros_like(there), there, spacing=(1, 1, 1)) == pytest.approx(373.1287)


def by_all_pairs(a: np.ndarray, b: np.ndarray, spacing: tuple[float, ...], tolerance: float) -> tuple[float, float]:
    """HD95 and surface Dice of two regions by looking at every pixel's neighbours and every pair of surface pixels."""

    def surface(region: np.ndarray) -> np.ndarray:
        inside = set(map(tuple, np.argwhere(region)))
        steps = [sign * row for row in np.eye(region.ndim, dtype=int) for sign in (-1, 1)]
        rim = [p for p in inside if any(tuple(np.array(p) + step) not in inside for step in steps)]
        return np.array(rim) * spacing

    pairs = cdist(surface(a), surface(b))
    there, back = pairs.min(axis=1), pairs.min(axis=0)
    near = (there <= tolerance + 1e-9).sum() + (back <= tolerance + 1e-9).sum()
    return max(np.percentile(there, 95), np.percentile(back, 95)), near / (len(there) + len(back))


@settings(max_examples=25, deadline=None)
@given(seeds, st.sampled_from([FLAT, DEEP]), st.floats(0.1, 4), st.integers(0, 20))
def test_scores_are_those_of_all_pairs_of_surface_pixels(seed, shape, step, quarters):
    tolerance = quarters / 4
    a, b = blobs(seed, 2, shape), blobs(seed + 1, 2, shape)
    spacing = (step, *SPACING[len(shape) - 1][1:])
    ours = surface_scores(a, b, 2, spacing, tolerance=tolerance)
    for item in range(len(a)):
        distance, share = by_all_pairs(a[item] == 1, b[item] == 1, spacing, tolerance)
        assert ours.hd95[item, 1] == pytest.approx(distance)
        assert ours.surface_dice[item, 1] == pytest.approx(share)


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(2, 4), st.sampled_from([FLAT, DEEP]))
def test_bounds_symmetry_and_perfection(seed, n_classes, shape):
    a, b = blobs(seed, n_classes, shape), blobs(seed + 1, n_classes, shape)
    spacing = SPACING[len(shape) - 1]
    assert hd95(a, b, n_classes, spacing) >= 0
    assert hd95(a, b, n_classes, spacing) == pytest.approx(hd95(b, a, n_classes, spacing))
    assert 0 <= surface_dice(a, b, n_classes, spacing) <= 1
    assert surface_dice(a, b, n_classes, spacing) == pytest.approx(surface_dice(b, a, n_classes, spacing))
    assert hd95(a, a, n_classes, spacing) == 0
    assert surface_dice(a, a, n_classes, spacing, tolerance=0) == 1


@settings(max_examples=30, deadline=None)
@given(seeds, st.floats(0.1, 10), st.floats(0, 3))
def test_a_larger_spacing_makes_larger_distances_and_needs_a_larger_tolerance(seed, factor, tolerance):
    a, b = blobs(seed, 3, FLAT), blobs(seed + 1, 3, FLAT)
    spacing, larger = SPACING[2], tuple(factor * step for step in SPACING[2])
    assert hd95(a, b, 3, larger) == pytest.approx(factor * hd95(a, b, 3, spacing))
    same = surface_dice(a, b, 3, larger, tolerance=factor * tolerance)
    assert same == pytest.approx(surface_dice(a, b, 3, spacing, tolerance=tolerance))


@settings(max_examples=20, deadline=None)
@given(seeds)
def test_a_greater_tolerance_never_finds_less(seed):
    a, b = blobs(seed, 2, FLAT), blobs(seed + 1, 2, FLAT)
    shares = [surface_dice(a, b, tolerance=tolerance) for tolerance in (0, 0.5, 1, 2, 4, 40)]
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_each_item_has_a_spacing_of_its_own_where_they_differ():
    a, b = np.zeros((2, 1, 6), dtype=np.uint8), np.zeros((2, 1, 6), dtype=np.uint8)
    a[:, 0, 1], b[:, 0, 3] = 1, 1
    np.testing.assert_allclose(hd95_per_item(a, b, 2, [(1.0, 0.5), (1.0, 3.0)])[:, 1], [1, 6])
    np.testing.assert_array_equal(surface_dice_per_item(a, b, 2, [(1.0, 0.5), (1.0, 3.0)])[:, 1], [1, 0])
    np.testing.assert_allclose(hd95_per_item(a, b, 2, [None, None])[:, 1], 2)
    np.testing.assert_allclose(hd95_per_item(a, b, 2, np.array([[1, 2], [1, 4]]))[:, 1], [4, 8])


def test_a_distance_that_equals_the_tolerance_is_within_it_whatever_the_rounding():
    a, b = np.zeros((1, 1, 9), dtype=np.uint8), np.zeros((1, 1, 9), dtype=np.uint8)
    a[0, 0, 1], b[0, 0, 4] = 1, 1
    assert 3 * 0.1 > 0.3
    assert surface_dice(a, b, spacing=(1, 0.1), tolerance=0.3) == 1


def test_the_background_has_no_scores_and_absent_classes_count_as_found():
    empty = np.zeros((2, 4, 4), dtype=np.uint8)
    scores = surface_scores(empty, empty, 3)
    assert np.isnan(scores.hd95[:, 0]).all()
    assert np.isnan(scores.surface_dice[:, 0]).all()
    np.testing.assert_array_equal(scores.hd95[:, 1:], 0)
    np.testing.assert_array_equal(scores.surface_dice[:, 1:], 1)


def test_missing_pixels_belong_to_no_class_and_items_nobody_knows_are_left_out():
    truth = blobs(0, 2, (3, 12, 15))
    prediction = blobs(1, 2, (3, 12, 15))
    truth[0, :, 8:], prediction[1, 5], truth[2] = 255, 255, 255
    cut_truth, cut_prediction = truth.copy(), prediction.copy()
    for cut in (cut_truth, cut_prediction):
        cut[0, :, 8:], cut[1, 5] = 0, 0
    ours, expected = surface_scores(prediction, truth), surface_scores(cut_prediction[:2], cut_truth[:2])
    np.testing.assert_allclose(ours.hd95[:2], expected.hd95)
    np.testing.assert_allclose(ours.surface_dice[:2], expected.surface_dice)
    assert np.isnan(ours.hd95[2]).all()
    assert hd95(prediction, truth) == pytest.approx(expected.hd95[:, 1].mean())
    assert math.isnan(hd95(prediction[2:], truth[2:]))
    assert math.isnan(surface_dice(prediction[2:], truth[2:]))


def test_wrong_use_is_explained():
    mask = np.zeros((2, 4, 4), dtype=np.uint8)
    with pytest.raises(InputError, match="shape"):
        hd95(mask, mask[:1])
    with pytest.raises(InputError, match=r"mask\[None\]"):
        surface_dice(mask[0], mask[0])
    with pytest.raises(InputError, match="Item 0, prediction: label 2"):
        hd95(mask + 2, mask)
    with pytest.raises(InputError, match="2 spatial axes"):
        hd95(mask, mask, spacing=(1.0, 1.0, 1.0))
    with pytest.raises(InputError, match="one number of mm per spatial axis"):
        hd95(mask, mask, spacing=2.0)
    with pytest.raises(InputError, match="positive"):
        hd95(mask, mask, spacing=(1.0, 0.0))
    with pytest.raises(InputError, match="2 items but 3 spacings"):
        hd95(mask, mask, spacing=[(1.0, 1.0)] * 3)
    with pytest.raises(InputError, match="spacing of item 1 is not known"):
        hd95(mask, mask, spacing=[(1.0, 1.0), None])
    with pytest.raises(InputError, match="tolerance"):
        surface_dice(mask, mask, tolerance=-1)
