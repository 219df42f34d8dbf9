"""Calibration error, Brier score and reliability curve against scikit-learn and plain loops."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss

from annotruth.errors import InputError
from annotruth.metrics import (
    brier_per_class,
    brier_score,
    calibration,
    calibration_sums,
    ece_per_class,
    expected_calibration_error,
    reliability_curve,
)

seeds = st.integers(0, 10_000)
TABLE, FLAT, DEEP = (), (5, 6), (3, 4, 5)
spatial_shapes = st.sampled_from([TABLE, FLAT, DEEP])


def predictions(
    seed: int, n_classes: int = 3, spatial: tuple[int, ...] = TABLE, n_items: int = 30
) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities (items, classes, *spatial), some of them on the edges of bins, and truth with unknown parts."""
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.full(n_classes, 0.7), (n_items, *spatial))
    coarse = rng.random((n_items, *spatial)) < 0.3
    probabilities[coarse] = rng.multinomial(10, np.full(n_classes, 1 / n_classes), int(coarse.sum())) / 10
    truth = rng.integers(0, n_classes, (n_items, *spatial))
    truth[rng.random(truth.shape) < 0.2] = 255 if spatial else -1
    return np.moveaxis(probabilities, -1, 1), truth


def flat(probabilities: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Known predictions alone: (predictions, classes) and (predictions,)."""
    known = (truth != 255) & (truth != -1)
    return np.moveaxis(probabilities, 1, -1)[known], truth[known]


def by_loops(confidence: np.ndarray, right: np.ndarray, n_bins: int) -> float:
    """ECE, one bin after the other; they hold their upper edge, the first one its lower as well."""
    edges = np.linspace(0, 1, n_bins + 1)
    error = 0.0
    for low, high in pairwise(edges):
        inside = (confidence > low) & (confidence <= high) | ((low == 0) & (confidence == 0))
        if inside.any():
            error += inside.sum() * abs(confidence[inside].mean() - right[inside].mean())
    return error / len(confidence)


@settings(max_examples=40, deadline=None)
@given(seeds, st.integers(2, 4), spatial_shapes, st.sampled_from([1, 10, 15]))
def test_calibration_error_is_its_formula(seed, n_classes, spatial, n_bins):
    probabilities, truth = predictions(seed, n_classes, spatial, n_items=6)
    p, t = flat(probabilities, truth)
    found = expected_calibration_error(probabilities, truth, n_bins=n_bins)
    assert found == pytest.approx(by_loops(p.max(axis=1), p.argmax(axis=1) == t, n_bins))
    assert 0 <= found <= 1
    by_class = [by_loops(p[:, label], t == label, n_bins) for label in range(n_classes)]
    np.testing.assert_allclose(ece_per_class(probabilities, truth, n_bins=n_bins), by_class)


@settings(max_examples=40, deadline=None)
@given(seeds, st.integers(2, 4), spatial_shapes)
def test_brier_score_is_scikit_learns(seed, n_classes, spatial):
    probabilities, truth = predictions(seed, n_classes, spatial, n_items=6)
    p, t = flat(probabilities, truth)
    expected = ((p - np.eye(n_classes)[t]) ** 2).sum(axis=1).mean()
    assert brier_score(probabilities, truth) == pytest.approx(expected)
    assert 0 <= expected <= 2
    by_class = [brier_score_loss(t == label, p[:, label]) for label in range(n_classes)]
    np.testing.assert_allclose(brier_per_class(probabilities, truth), by_class)
    assert sum(by_class) == pytest.approx(expected)


@settings(max_examples=40, deadline=None)
@given(seeds, spatial_shapes, st.sampled_from([5, 15]))
def test_the_reliability_curve_of_a_class_is_scikit_learns(seed, spatial, n_bins):
    probabilities, truth = predictions(seed, 3, spatial)
    p, t = flat(probabilities, truth)
    curve = reliability_curve(probabilities, truth, label=1, n_bins=n_bins)
    accuracy, confidence = calibration_curve(t == 1, p[:, 1], n_bins=n_bins)
    there = curve.count > 0
    np.testing.assert_allclose(curve.accuracy[there], accuracy)
    np.testing.assert_allclose(curve.confidence[there], confidence)
    assert curve.count.sum() == len(t)
    assert np.isnan(curve.accuracy[~there]).all()
    assert np.isnan(curve.confidence[~there]).all()


@settings(max_examples=20, deadline=None)
@given(seeds, st.integers(2, 5), spatial_shapes)
def test_sure_and_right_is_perfect_and_sure_and_wrong_the_worst(seed, n_classes, spatial):
    truth = np.random.default_rng(seed).integers(0, n_classes, (4, *spatial))
    right = np.moveaxis(np.eye(n_classes)[truth], -1, 1)
    assert brier_score(right, truth) == expected_calibration_error(right, truth) == 0
    wrong = np.moveaxis(np.eye(n_classes)[(truth + 1) % n_classes], -1, 1)
    assert brier_score(wrong, truth) == pytest.approx(2)
    assert expected_calibration_error(wrong, truth) == 1


def test_one_who_is_as_sure_as_right_is_calibrated_though_not_perfect():
    probabilities = np.tile([0.25, 0.75], (8, 1))
    truth = np.array([1, 1, 1, 0] * 2)
    assert expected_calibration_error(probabilities, truth) == pytest.approx(0)
    assert brier_score(probabilities, truth) == pytest.approx(2 * (0.75 * 0.25**2 + 0.25 * 0.75**2))


@settings(max_examples=20, deadline=None)
@given(seeds, spatial_shapes)
def test_sums_of_parts_are_the_sums_of_all(seed, spatial):
    probabilities, truth = predictions(seed, 3, spatial, n_items=7)
    parts = calibration_sums(probabilities[:3], truth[:3]) + calibration_sums(probabilities[3:], truth[3:])
    whole = calibration_sums(probabilities, truth)
    assert parts.known == whole.known
    np.testing.assert_allclose(parts.bins, whole.bins)
    np.testing.assert_allclose(parts.squared, whole.squared)


def test_blocks_change_nothing(monkeypatch):
    for spatial in (TABLE, FLAT):
        probabilities, truth = predictions(0, 3, spatial)
        whole = calibration_sums(probabilities, truth)
        monkeypatch.setattr(calibration, "BLOCK", 12)
        in_blocks = calibration_sums(probabilities, truth)
        monkeypatch.undo()
        np.testing.assert_allclose(in_blocks.bins, whole.bins)
        np.testing.assert_allclose(in_blocks.squared, whole.squared)


def test_large_arrays_need_no_other_of_their_size():
    probabilities = np.full((2, 4, 96, 96, 96), 0.25, dtype=np.float32)
    truth = np.zeros((2, 96, 96, 96), dtype=np.uint8)
    tracemalloc.start()
    expected_calibration_error(probabilities, truth)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < probabilities.nbytes


def test_nothing_known_gives_no_number():
    probabilities, truth = predictions(0)
    nothing = np.full_like(truth, -1)
    assert np.isnan(expected_calibration_error(probabilities, nothing))
    assert np.isnan(brier_score(probabilities, nothing))
    assert np.isnan(ece_per_class(probabilities, nothing)).all()
    assert reliability_curve(probabilities, nothing).count.sum() == 0


def test_what_is_not_known_may_hold_anything():
    probabilities, truth = predictions(0)
    expected = brier_score(probabilities, truth)
    probabilities[truth == -1] = np.nan
    assert brier_score(probabilities, truth) == expected


def test_wrong_use_is_explained():
    probabilities, truth = predictions(0, 3, FLAT, n_items=4)
    with pytest.raises(InputError, match=r"truth must have \(4, 5, 6\)"):
        brier_score(probabilities, truth[:, 0])
    with pytest.raises(InputError, match="two classes or more"):
        brier_score(probabilities[:, :1], truth)
    with pytest.raises(InputError, match=r"\(items, classes\)"):
        brier_score(truth[0, 0], truth[0, 0])
    with pytest.raises(InputError, match="label 3"):
        brier_score(probabilities, truth * 0 + 3)
    with pytest.raises(InputError, match="n_bins"):
        expected_calibration_error(probabilities, truth, n_bins=0)
    logits = probabilities.copy()
    logits[2] = 3 - logits[2]
    with pytest.raises(InputError, match=r"Item 2.*before the softmax"):
        brier_score(logits, truth)
    table, labels = predictions(1)
    labels[:7], labels[7] = -1, 0
    table[7] = np.nan
    with pytest.raises(InputError, match="Item 7"):
        brier_score(table, labels)
    table[7] = [0.2, 0.2, 0.2]
    with pytest.raises(InputError, match="sum to 1"):
        brier_score(table, labels)
