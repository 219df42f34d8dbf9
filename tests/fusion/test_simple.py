"""SIMPLE against the same rounds on pixels; whom it drops."""

from __future__ import annotations

import numpy as np
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.metrics import dice

from .mask_data import assert_refuses_tables_and_single_raters, shifted_masks


def by_pixels(masks: np.ndarray, n_classes: int, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """Fused labels and weights, pixel by pixel."""
    weight = np.ones(len(masks))
    kept = weight > 0
    for _ in range(50):
        shares = np.stack(
            [(weight.reshape(-1, *[1] * (masks.ndim - 1)) * (masks == k)).sum(axis=0) for k in range(n_classes)]
        )
        fused = shares.argmax(axis=0)
        overlap = []
        for mask in masks:
            seen = mask != 255
            both = [2 * ((mask == k) & (fused == k)).sum() for k in range(1, n_classes)]
            either = [(mask == k).sum() + ((fused == k) & seen).sum() for k in range(1, n_classes)]
            overlap.append(np.mean([b / e for b, e in zip(both, either) if e]))
        overlap = np.array(overlap)
        low = np.flatnonzero(kept & (overlap < overlap[kept].mean() - alpha * overlap[kept].std()))
        for rater in sorted(low, key=lambda r: overlap[r])[: max(kept.sum() - 3, 0)]:
            kept[rater] = False
        weight = np.where(kept, overlap, 0.0)
    return fused, weight


@pytest.mark.parametrize("n_classes", [2, 3])
def test_same_as_on_pixels(n_classes: int) -> None:
    masks = np.concatenate([shifted_masks(n_classes), shifted_masks(n_classes, seed=1)[1:3]])
    masks[5] = np.roll(masks[5], 7, axis=1)
    fused = at.SIMPLE(alpha=1.0).fit(at.Annotations.from_masks(masks[None], classes=n_classes))
    labels, weight = by_pixels(masks, n_classes, alpha=1.0)
    np.testing.assert_array_equal(fused.predict()[0], labels)
    np.testing.assert_allclose(fused.weights_, weight, atol=1e-5)
    assert fused.weights_[5] == 0


def test_overlaps_are_dice() -> None:
    masks = shifted_masks()[:3]
    fused = at.SIMPLE().fit(at.Annotations.from_masks(masks[None]))
    expected = [dice(mask[None], fused.predict()) for mask in masks]
    np.testing.assert_allclose(fused.weights_, expected, atol=1e-5)


def test_raters_who_failed_are_dropped_where_each_case_stands_alone() -> None:
    masks = np.stack([shifted_masks(seed=0), shifted_masks(seed=1)])
    masks[0, 0], masks[1, 1] = 0, np.roll(masks[1, 1], 9, axis=0)
    fused = at.SIMPLE(alpha=1.2, scope="case").fit(at.Annotations.from_masks(masks))
    assert (fused.weights_ == 0).tolist() == [[True, False, False, False], [False, True, False, False]]


def test_three_stay_however_they_differ() -> None:
    masks = np.zeros((1, 4, 12, 12), dtype=np.uint8)
    for rater in range(4):
        masks[0, rater, :, 3 * rater : 3 * rater + 3] = 1
    assert (at.SIMPLE(alpha=0.01).fit(at.Annotations.from_masks(masks)).weights_ > 0).sum() >= 3


def test_unfit_input_is_refused_in_words() -> None:
    assert_refuses_tables_and_single_raters(at.SIMPLE(), "Wawa")
    with pytest.raises(InputError, match="alpha must be above 0"):
        at.SIMPLE(alpha=0.0).fit(at.Annotations.from_masks(shifted_masks()[None]))
