"""Spatial STAPLE: where it helps, and its options."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

import annotruth as at
from annotruth.errors import InputError


def raters_failing_in_different_places(size: int = 96) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    truth = (ndimage.gaussian_filter(rng.normal(size=(size, size)), size / 16) > 0).astype(np.uint8)
    rows, columns = np.indices((size, size)) / size
    masks = []
    for centre in [(0.2, 0.2), (0.2, 0.8), (0.8, 0.2), (0.8, 0.8), (0.5, 0.5)]:
        error = 0.05 + 0.45 * np.exp(-((rows - centre[0]) ** 2 + (columns - centre[1]) ** 2) / 0.12)
        masks.append(np.where(rng.random(truth.shape) < error, 1 - truth, truth))
    return np.stack(masks).astype(np.uint8), truth


def test_better_than_staple_where_raters_fail_in_different_places() -> None:
    masks, truth = raters_failing_in_different_places()
    annotations = at.Annotations.from_masks(masks[None])
    local, whole = at.SpatialSTAPLE(window=15).fit(annotations), at.STAPLE().fit(annotations)
    assert (local.predict()[0] != truth).mean() < 0.5 * (whole.predict()[0] != truth).mean()
    maps = local.confusion_map(0)
    assert maps.shape == (5, 2, 2, 96, 96)
    np.testing.assert_allclose(maps.sum(axis=2), 1, atol=1e-5)
    skill = (maps[0, 0, 0] + maps[0, 1, 1]) / 2  # rater 1 fails in the upper left corner
    assert skill[70:, 70:].mean() > skill[10:30, 10:30].mean() + 0.1


def test_windows_larger_than_the_picture_are_the_whole_picture() -> None:
    masks, _ = raters_failing_in_different_places(24)
    annotations = at.Annotations.from_masks(masks[None])
    first, second = (at.SpatialSTAPLE(window=w, shrinkage=1e-6).fit(annotations) for w in (99, 201))
    np.testing.assert_allclose(first.predict_proba(), second.predict_proba(), atol=1e-3)


def test_posteriors_too_large_to_keep_are_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    masks, _ = raters_failing_in_different_places(32)
    annotations = at.Annotations.from_masks(np.stack([masks, masks[:, ::-1]]))
    kept = at.SpatialSTAPLE(window=7).fit(annotations).predict_proba()
    monkeypatch.setattr("annotruth.fusion.base._MAX_KEPT_BYTES", 0)
    fused = at.SpatialSTAPLE(window=7).fit(annotations)
    np.testing.assert_array_equal(fused.predict_proba(), kept)
    assert (fused.local_n_iter_ > 0).all()


def test_one_class_and_consensus() -> None:
    masks, truth = raters_failing_in_different_places(48)
    annotations = at.Annotations.from_masks(2 * masks[None], classes=3)
    fused = at.SpatialSTAPLE(window=7, foreground=2).fit(annotations)
    assert (fused.predict()[0] == truth).mean() > 0.9
    without = at.SpatialSTAPLE(window=7, foreground=2, exclude_consensus=True).fit(annotations)
    agreed = (masks == masks[0]).all(axis=0)
    np.testing.assert_array_equal(without.predict()[0][agreed], masks[0][agreed])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"window": 4}, "odd"),
        ({"window": 0}, "odd"),
        ({"window": 2.5}, "odd"),
        ({"window": (3, 3, 3)}, "3 sides"),
        ({"shrinkage": 0.0}, "shrinkage"),
    ],
)
def test_wrong_parameters_are_refused_in_words(wrong: dict[str, object], message: str) -> None:
    masks, _ = raters_failing_in_different_places(16)
    with pytest.raises(InputError, match=message):
        at.SpatialSTAPLE(**wrong).fit(at.Annotations.from_masks(masks[None]))


def test_tables_have_no_places() -> None:
    with pytest.raises(InputError, match="DawidSkene"):
        at.SpatialSTAPLE().fit(at.Annotations.from_answers(np.zeros((3, 3), dtype=int)))
