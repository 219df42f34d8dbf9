"""Shape-based averaging against distance maps of SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

import annotruth as at
from annotruth.fusion.shape_based import mean_distance

from .mask_data import assert_refuses_tables_and_single_raters, shifted_masks


def signed_distance(mask: np.ndarray, label: int, spacing: tuple[float, ...] | None = None) -> np.ndarray:
    inside, outside = (ndimage.distance_transform_edt(each, spacing) for each in (mask == label, mask != label))
    return outside - inside


@pytest.mark.parametrize(("n_classes", "shape"), [(2, (24, 20)), (3, (24, 20)), (4, (11, 12, 13))])
def test_distances_and_labels_are_those_of_scipy(n_classes: int, shape: tuple[int, ...]) -> None:
    masks = shifted_masks(n_classes, shape)[:3]
    expected = np.stack([np.mean([signed_distance(m, k) for m in masks], axis=0) for k in range(n_classes)])
    found = mean_distance(masks.reshape(3, -1), n_classes, shape)
    np.testing.assert_allclose(found.reshape(expected.shape), expected, atol=1e-9)
    fused = at.ShapeBasedAverage().fit(at.Annotations.from_masks(masks[None], classes=n_classes))
    np.testing.assert_array_equal(fused.predict()[0], expected.argmin(axis=0))


def test_distances_know_the_spacing() -> None:
    masks, spacing = shifted_masks(shape=(10, 12, 6))[:3], (0.5, 0.5, 3.0)
    expected = np.mean([signed_distance(mask, 1, spacing) for mask in masks], axis=0)
    fused = at.ShapeBasedAverage().fit(at.Annotations.from_masks(masks[None], spacing=spacing))
    clear = np.abs(expected) > 1e-6
    np.testing.assert_array_equal(fused.predict()[0][clear], (expected < 0)[clear])


def test_a_rater_who_drew_nothing_does_not_outvote_the_others() -> None:
    masks = np.zeros((1, 4, 20, 20), dtype=np.uint8)
    masks[0, :3, 5:15, 5:15] = 1
    fused = at.ShapeBasedAverage().fit(at.Annotations.from_masks(masks))
    np.testing.assert_array_equal(fused.predict()[0], masks[0, 0])
    blank = at.ShapeBasedAverage().fit(at.Annotations.from_masks(np.zeros_like(masks)))
    assert not blank.predict().any()


def test_raters_are_asked_only_where_they_labelled() -> None:
    masks = shifted_masks()[:3]
    partial = np.concatenate([masks, masks[:1]])
    partial[3, :, 10:] = 255
    fused = at.ShapeBasedAverage().fit(at.Annotations.from_masks(partial[None]))
    without = at.ShapeBasedAverage().fit(at.Annotations.from_masks(masks[None]))
    np.testing.assert_array_equal(fused.predict()[0, :, 10:], without.predict()[0, :, 10:])


def test_no_islands_where_outlines_differ() -> None:
    rng = np.random.default_rng(0)
    rows, columns = np.indices((64, 64))
    masks = [np.hypot(rows - 32 - rng.normal(0, 3), columns - 32 - rng.normal(0, 3)) < 18 for _ in range(4)]
    fused = at.ShapeBasedAverage().fit(at.Annotations.from_masks(np.stack(masks)[None].astype(np.uint8)))
    assert ndimage.label(fused.predict()[0])[1] == 1


def test_unfit_input_is_refused_in_words() -> None:
    assert_refuses_tables_and_single_raters(at.ShapeBasedAverage(), "MajorityVote")
