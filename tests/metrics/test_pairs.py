"""Pairwise agreement and the energy distance, against plain loops over all pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.metrics import dice, ged, ged_per_item, iou, pairs, pairwise_dice

seeds = st.integers(0, 10_000)


def random_masks(seed: int, shape: tuple[int, ...], n_classes: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, n_classes, shape).astype(np.uint8)


def mean_distance(a, b, n_classes, score):
    return np.mean([1 - score(x[None], y[None], n_classes) for x in a for y in b])


@settings(max_examples=20, deadline=None)
@given(seeds, st.integers(2, 3), st.sampled_from(["dice", "iou"]))
def test_ged_is_its_formula_over_all_pairs(seed, n_classes, overlap):
    score = {"dice": dice, "iou": iou}[overlap]
    samples, references = random_masks(seed, (2, 4, 5, 6), n_classes), random_masks(seed + 1, (2, 3, 5, 6), n_classes)
    expected = [
        2 * mean_distance(s, y, n_classes, score)
        - mean_distance(s, s, n_classes, score)
        - mean_distance(y, y, n_classes, score)
        for s, y in zip(samples, references, strict=True)
    ]
    np.testing.assert_allclose(ged_per_item(samples, references, n_classes, overlap=overlap), expected)
    assert ged(samples, references, n_classes, overlap=overlap) == pytest.approx(np.mean(expected))


@settings(max_examples=20, deadline=None)
@given(seeds)
def test_ged_is_zero_for_the_references_themselves_and_knows_no_order(seed):
    references = random_masks(seed, (2, 4, 5, 6))
    assert ged(references, references) == 0
    assert ged(references[:, ::-1], references) == pytest.approx(0, abs=1e-12)
    samples = random_masks(seed + 1, (2, 3, 5, 6))
    assert ged(samples[:, ::-1], references) == pytest.approx(ged(samples, references))
    assert ged(samples, references) == pytest.approx(ged(references, samples))


def test_ged_tells_perfect_samples_from_random_ones():
    """Trap: with similarities, all terms added, random predictions score like perfect ones."""
    references = np.zeros((1, 3, 12, 12), dtype=np.uint8)
    references[0, 0, 3:9, 3:9] = references[0, 1, 3:9, 3:8] = references[0, 2, 2:9, 3:9] = 1
    assert ged(references, references) == 0
    assert ged(random_masks(0, (1, 3, 12, 12)), references) > 0.3
    assert ged(np.zeros((1, 3, 12, 12), dtype=np.uint8), references) > 1.5


def test_two_empty_masks_are_at_distance_zero():
    empty = np.zeros((1, 2, 4, 4), dtype=np.uint8)
    assert ged(empty, empty) == 0
    assert ged(empty[:, :1], empty) == 0


def test_raters_who_did_not_label_are_left_out_of_ged():
    samples, references = random_masks(0, (2, 3, 5, 5)), random_masks(1, (2, 3, 5, 5))
    with_absentee = references.copy()
    with_absentee[0, 2] = 255
    expected = ged_per_item(samples[:1], references[:1, :2])
    np.testing.assert_allclose(ged_per_item(samples, with_absentee)[0], expected[0])
    with_absentee[0] = 255
    assert np.isnan(ged_per_item(samples, with_absentee)[0])
    assert ged(samples, with_absentee) == pytest.approx(ged_per_item(samples, references)[1])


@settings(max_examples=20, deadline=None)
@given(seeds, st.integers(2, 4), st.sampled_from([(3, 4, 5, 6), (2, 3, 4, 3, 5)]))
def test_pairwise_dice_is_dice_of_each_pair(seed, n_classes, shape):
    masks = random_masks(seed, shape, n_classes)
    found = pairwise_dice(masks, n_classes)
    for a, b in np.ndindex(found.shape):
        assert found[a, b] == pytest.approx(dice(masks[:, a], masks[:, b], n_classes))
    np.testing.assert_allclose(found, found.T)
    order = np.random.default_rng(seed).permutation(shape[1])
    np.testing.assert_allclose(pairwise_dice(masks[:, order], n_classes), found[np.ix_(order, order)])


def test_pairwise_dice_uses_the_items_both_labelled_and_the_pixels_both_labelled():
    masks = random_masks(3, (3, 3, 6, 6))
    masks[0, 1], masks[1:, 2], masks[2, 0, :3] = 255, 255, 255
    found = pairwise_dice(masks)
    pair = [dice(masks[1:2, 0], masks[1:2, 1]), dice(masks[2:, 0, 3:], masks[2:, 1, 3:])]
    assert found[0, 1] == pytest.approx(np.mean(pair))
    assert found[0, 2] == pytest.approx(dice(masks[:1, 0], masks[:1, 2]))
    assert np.isnan(found[1, 2])
    np.testing.assert_array_equal(np.diagonal(found), 1)


def test_masks_may_come_as_annotations_or_in_different_sizes_or_larger_than_a_block(monkeypatch):
    sizes = [random_masks(0, (3, 5, 6)), random_masks(1, (3, 7, 4))]
    expected = (pairwise_dice(sizes[0][None]) + pairwise_dice(sizes[1][None])) / 2
    np.testing.assert_allclose(pairwise_dice(sizes), expected)
    np.testing.assert_allclose(pairwise_dice(Annotations.from_masks(sizes)), expected)
    monkeypatch.setattr(pairs, "BLOCK", 7)
    np.testing.assert_allclose(pairwise_dice(sizes), expected)


def test_wrong_use_is_explained():
    masks = random_masks(0, (2, 3, 5, 5))
    with pytest.raises(InputError, match="2 items but references of 1"):
        ged(masks, masks[:1])
    with pytest.raises(InputError, match="differ in size"):
        ged(masks, masks[..., :4])
    with pytest.raises(InputError, match="Known: dice, iou"):
        ged(masks, masks, overlap="cosine")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"\(items, raters, \*spatial\)"):
        pairwise_dice(masks[0])
    with pytest.raises(InputError, match="no item"):
        pairwise_dice(masks[:0])
