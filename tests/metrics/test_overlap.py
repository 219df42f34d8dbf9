"""Dice, intersection over union and soft Dice against scikit-learn and plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score, jaccard_score

from annotruth.errors import InputError
from annotruth.metrics import dice, dice_per_item, iou, iou_per_item, mean_iou, soft_dice

seeds = st.integers(0, 10_000)


def two_masks(seed: int, n_classes: int = 2, shape: tuple[int, ...] = (3, 6, 7)) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, n_classes, shape).astype(np.uint8), rng.integers(0, n_classes, shape).astype(np.uint8)


@pytest.mark.parametrize(("n_classes", "shape"), [(2, (3, 6, 7)), (4, (3, 6, 7)), (3, (2, 4, 5, 6))])
def test_scores_are_scikit_learns(n_classes, shape):
    prediction, truth = two_masks(0, n_classes, shape)
    labels = list(range(n_classes))
    for item in range(len(truth)):
        pair = truth[item].ravel(), prediction[item].ravel()
        by_class = f1_score(*pair, labels=labels, average=None)
        np.testing.assert_allclose(dice_per_item(prediction, truth, n_classes)[item], by_class)
        by_class = jaccard_score(*pair, labels=labels, average=None)
        np.testing.assert_allclose(iou_per_item(prediction, truth, n_classes)[item], by_class)
    pooled = jaccard_score(truth.ravel(), prediction.ravel(), labels=labels, average="macro")
    assert mean_iou(prediction, truth, n_classes) == pytest.approx(pooled)


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(2, 4))
def test_bounds_symmetry_and_perfection(seed, n_classes):
    a, b = two_masks(seed, n_classes)
    for score in (dice, iou, mean_iou):
        assert 0 <= score(a, b, n_classes) <= 1
        assert score(a, b, n_classes) == pytest.approx(score(b, a, n_classes))
        assert score(a, a, n_classes) == 1
    overlap, union = dice_per_item(a, b, n_classes), iou_per_item(a, b, n_classes)
    np.testing.assert_allclose(union, overlap / (2 - overlap))


def test_background_is_left_out_unless_asked_for():
    """Trap: a model that finds nothing looks good as soon as background counts."""
    truth = np.zeros((1, 10, 10), dtype=np.uint8)
    truth[0, 4:6, 4:6] = 1
    nothing = np.zeros_like(truth)
    assert dice(nothing, truth) == 0
    assert dice(nothing, truth, include_background=True) > 0.48
    assert iou(nothing, truth) == 0


def test_items_count_alike_whatever_their_size():
    truth = np.zeros((2, 8, 8), dtype=np.uint8)
    truth[0, :, :4], truth[1, 0, 0] = 1, 1
    prediction = truth.copy()
    prediction[1] = 0
    assert dice(prediction, truth) == 0.5


def test_two_empty_masks_agree_and_absent_classes_count_as_found():
    empty = np.zeros((2, 4, 4), dtype=np.uint8)
    assert dice(empty, empty) == iou(empty, empty) == 1
    np.testing.assert_array_equal(dice_per_item(empty, empty, 3), 1)
    assert mean_iou(empty, empty, 3) == 1  # the mean over background alone


@settings(max_examples=20, deadline=None)
@given(seeds)
def test_missing_pixels_do_not_count(seed):
    prediction, truth = two_masks(seed)
    truth[:, :, 4:] = 255
    prediction[0, 0] = 255
    seen = [
        (p[1:, :4], t[1:, :4]) if i == 0 else (p[:, :4], t[:, :4]) for i, (p, t) in enumerate(zip(prediction, truth))
    ]
    expected = np.mean([dice(p[None], t[None]) for p, t in seen])
    assert dice(prediction, truth) == pytest.approx(expected)


def test_items_nobody_knows_are_left_out():
    truth = np.ones((2, 3, 3), dtype=np.uint8)
    truth[1] = 255
    prediction = np.ones((2, 3, 3), dtype=np.uint8)
    assert dice(prediction, truth) == 1
    assert np.isnan(dice_per_item(prediction, truth)[1]).all()
    assert np.isnan(dice(prediction[1:], truth[1:]))
    assert np.isnan(mean_iou(prediction[1:], truth[1:], 2))


@settings(max_examples=20, deadline=None)
@given(seeds)
def test_soft_dice_is_the_mean_over_thresholds(seed):
    rng = np.random.default_rng(seed)
    probability, truth = rng.random((2, 3, 5, 4)) * rng.integers(0, 2, (2, 3, 1, 1))
    expected = []
    for p, t in zip(probability, truth, strict=True):
        for threshold in (0.1, 0.3, 0.5, 0.7, 0.9):
            a, b = set(np.flatnonzero(p > threshold)), set(np.flatnonzero(t > threshold))
            expected.append(2 * len(a & b) / (len(a) + len(b)) if a or b else 1.0)
    assert soft_dice(probability, truth) == pytest.approx(np.mean(expected))
    assert soft_dice(truth, truth) == 1


def test_soft_dice_leaves_out_what_is_not_known():
    probability, truth = np.array([[[0.2, 0.8, 0.9]]]), np.array([[[0.2, 0.8, np.nan]]])
    assert soft_dice(probability, truth) == 1
    assert np.isnan(soft_dice(probability, np.full((1, 1, 3), np.nan)))


def test_wrong_use_is_explained():
    mask = np.zeros((2, 4, 4), dtype=np.uint8)
    with pytest.raises(InputError, match="shape"):
        dice(mask, mask[:1])
    with pytest.raises(InputError, match=r"mask\[None\]"):
        dice(mask[0], mask[0])
    with pytest.raises(InputError, match="label 2"):
        dice(mask + 2, mask)
    with pytest.raises(InputError, match="between 0 and 1"):
        soft_dice(mask + 3.0, mask)
