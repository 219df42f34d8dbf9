"""What a data set is like, and what follows from it: axes to mirror along, and values to clip to."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth import Annotations
from annotruth.training.datasets import MaskDataset
from annotruth.training.fingerprint import Fingerprint, clip_values, mirror_axes


def two_boxes(first: tuple[int, int], second: tuple[int, int], raters: int = 2) -> np.ndarray:
    """Masks of boxes of 3 pixels' side, with their corners there: classes 1 and 2."""
    labels = np.zeros((raters, 16, 16), np.uint8)
    for number, (top, left) in ((1, first), (2, second)):
        labels[:, top : top + 3, left : left + 3] = number
    return labels


def seen(masks: list[np.ndarray], classes: int = 3) -> list[Fingerprint]:
    return [Fingerprint.of(None, mask, classes) for mask in masks]


def test_centres_and_spreads_against_numpy():
    rng = np.random.default_rng(0)
    labels = rng.choice([0, 1, 2, 4, 255], (3, 6, 7, 5)).astype(np.uint8)
    found = Fingerprint.of(None, labels, classes=5)
    assert sorted(found.centre) == [(rater, number) for rater in range(3) for number in (1, 2, 4)]
    for rater, number in found.centre:
        where = np.argwhere(labels[rater] == number)
        np.testing.assert_allclose(found.centre[rater, number], where.mean(axis=0))
        np.testing.assert_allclose(found.spread[rater, number], where.std(axis=0))


def test_two_classes_in_one_order_are_not_mirrored_along_it():
    rng = np.random.default_rng(0)
    left_right = [two_boxes((rng.integers(13), 1), (rng.integers(13), 9)) for _ in range(20)]
    assert mirror_axes(seen(left_right), axes=2) == (0,)
    swapped = [np.where(mask > 0, 3 - mask, 0).astype(np.uint8) for mask in left_right[:3]]
    assert mirror_axes(seen(left_right[3:] + swapped), axes=2) == (0, 1), "15 % of the items have the other order"
    assert mirror_axes(seen(left_right[:18] + swapped[:2]), axes=2) == (0,), "10 % of the items have the other order"


def test_raters_who_take_one_class_for_the_other_do_not_hide_their_order():
    rng = np.random.default_rng(0)
    items = [two_boxes((rng.integers(13), 1), (rng.integers(13), 9), raters=3) for _ in range(20)]
    for mask in items:
        mask[1] = np.where(mask[1] > 0, 3 - mask[1], 0)
        mask[2] = mask[rng.integers(2)]
    assert mirror_axes(seen(items), axes=2) == (0,)
    assert mirror_axes(seen([mask[2:] for mask in items]), axes=2) == (0, 1), "of one alone it cannot be told"
    assert mirror_axes(seen(items[:9]), axes=2) == (0, 1), "nor of few items"


def test_a_class_that_lies_always_on_one_side_is_not_mirrored_to_the_other():
    rng = np.random.default_rng(0)
    one_kidney = [two_boxes((1, left := rng.integers(13)), (1, left), raters=1) for _ in range(20)]
    assert mirror_axes(seen(one_kidney), axes=2) == (1,)
    other_side = [mask[:, ::-1] for mask in one_kidney[:3]]
    assert mirror_axes(seen(one_kidney[3:] + other_side), axes=2) == (0, 1), "15 % of the items have it there"
    across = [np.pad(mask, ((0, 0), (5, 0), (0, 0)))[:, :16] for mask in one_kidney]
    assert mirror_axes(seen(across), axes=2) == (0, 1), "it reaches over the middle"


def test_few_items_forbid_nothing():
    assert mirror_axes(seen([two_boxes((1, 1), (9, 9))] * 4), axes=2) == (0, 1)
    assert mirror_axes(seen([two_boxes((1, 1), (9, 9))] * 5), axes=2) == ()


def test_one_class_within_the_other_forbids_nothing():
    labels = np.zeros((1, 20, 20), np.uint8)
    labels[0, 2:18, 2:18], labels[0, 7:15, 6:14] = 1, 2  # always a little lower
    assert mirror_axes(seen([labels] * 9), axes=2) == (0, 1)


def test_classes_that_are_never_seen_together_forbid_nothing():
    both = [two_boxes((1, 1), (9, 9)), two_boxes((9, 9), (1, 1))]
    first, second = ([np.where(mask == number, 0, mask).astype(np.uint8) for mask in both] for number in (1, 2))
    assert mirror_axes(seen([*first, *second] * 9), axes=2) == (0, 1)


def test_strokes_and_missing_raters_count_by_what_is_marked():
    labels = np.full((3, 16, 16), 255, np.uint8)
    labels[0, 3, 4:11], labels[1, 12, 6:9] = 1, 2
    assert mirror_axes(seen([labels] * 6), axes=2) == (1,)


def of_values(values: np.ndarray, marked: np.ndarray, items: int = 2) -> list[Fingerprint]:
    masks = np.repeat(marked[None, None].astype(np.uint8), items, axis=0)
    return list(
        MaskDataset(Annotations.from_masks(masks, images=np.repeat(values[None], items, axis=0))).fingerprints()
    )


@pytest.fixture
def marked() -> np.ndarray:
    mask = np.zeros((40, 40), bool)
    mask[10:30, 10:30] = True
    return mask


def test_computed_tomography_is_clipped_to_percentiles_of_the_foreground(marked):
    rng = np.random.default_rng(0)
    image = np.where(marked, rng.normal(60, 30, (40, 40)), rng.choice([-1024, 0, 1500], (40, 40))).round()[None]
    wanted = np.percentile(image[0][marked], (0.5, 99.5))
    np.testing.assert_allclose(clip_values(of_values(image, marked)), [wanted], rtol=1e-5)


@pytest.mark.parametrize("kind", ["8 bits", "digits", "magnetic resonance", "standardised", "constant"])
def test_ordinary_pictures_are_not_clipped(marked, kind):
    rng = np.random.default_rng(0)
    image = {
        "8 bits": rng.integers(0, 256, (40, 40)) * np.where(marked, 0.2, 1),
        "digits": marked + rng.normal(0, 0.1, (40, 40)).clip(-1, 1),
        "magnetic resonance": rng.gamma(2, 200, (40, 40)) + 100 * marked,
        "standardised": rng.normal(0, 1, (40, 40)) + 3 * marked,
        "constant": np.zeros((40, 40)),
    }[kind]
    assert clip_values(of_values(image[None].astype(np.float32), marked)) is None


def test_values_far_beyond_the_foreground_are_clipped(marked):
    image = np.random.default_rng(0).normal(0, 1, (2, 40, 40))
    image[1, 0, 0] = 1e6  # a broken pixel
    low, high = clip_values(of_values(image, marked))
    assert low == pytest.approx((image[0].min(), image[0].max()), rel=1e-5), "this channel is as it was"
    np.testing.assert_allclose(high, np.percentile(image[1][marked], (0.5, 99.5)), rtol=1e-5)


def test_without_foreground_or_images_nothing_is_clipped(marked):
    image = np.full((1, 40, 40), -1000.0)
    assert clip_values(of_values(image, marked & False)) is None
    assert clip_values(of_values(image, marked)) is None, "the foreground has but one value"
    assert clip_values(seen([marked[None].astype(np.uint8)])) is None


def test_many_foreground_pixels_are_sampled_evenly():
    image = np.arange(200.0 * 200).reshape(1, 200, 200)
    found = Fingerprint.of(image, np.ones((1, 200, 200), np.uint8), classes=2)
    assert found.foreground.shape == (1, 10_000)
    assert found.foreground[0, 0] == 0
    assert found.foreground[0, -1] == 200 * 200 - 1
