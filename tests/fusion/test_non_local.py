"""Non-local STAPLE: its limit is STAPLE; against plain loops; atlases."""

from __future__ import annotations

import numpy as np
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.fusion._em.patches import PatchSearch

from .mask_data import assert_refuses_tables_and_single_raters, image_of, shifted_masks


@pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning", "ignore:.*did not settle")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("excluded", [False, True])
def test_without_a_search_it_is_staple(n_classes: int, excluded: bool) -> None:
    masks = shifted_masks(n_classes)
    annotations = at.Annotations.from_masks(masks[None], image_of(masks)[None], classes=n_classes)
    plain = at.STAPLE(exclude_consensus=excluded).fit(annotations)
    same_images = np.repeat(image_of(masks), 5, axis=0)
    atlases = at.Annotations.from_masks(masks[None], same_images[None], classes=n_classes)
    for fused in (
        at.NonLocalSTAPLE(search_radius=0, tol=1e-9, exclude_consensus=excluded).fit(annotations),
        at.NonLocalSTAPLE(search_radius=0, tol=1e-9, exclude_consensus=excluded, atlases=True).fit(atlases),
    ):
        np.testing.assert_allclose(fused.predict_proba(), plain.predict_proba(), atol=1e-4)
        np.testing.assert_allclose(fused.confusion_, plain.confusion_, atol=1e-5)


@pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning", "ignore:.*did not settle")
@pytest.mark.parametrize("shape", [(9, 8), (6, 5, 5)])
def test_one_iteration_is_the_papers(shape: tuple[int, ...]) -> None:
    """Truth and matrices from the formula, over all soft labels, with the matrices of STAPLE to begin with."""
    masks = shifted_masks(2, shape)
    image = image_of(masks)
    annotations = at.Annotations.from_masks(masks[None], image[None], classes=2)
    whole = at.STAPLE(exclude_consensus=True).fit(annotations)
    fused = at.NonLocalSTAPLE(max_iter=1, tol=0.0, exclude_consensus=True).fit(annotations)
    flat = masks.reshape(4, -1)
    disputed = np.array([len({*column} - {255}) > 1 for column in flat.T])
    search = PatchSearch(
        image.reshape(1, -1), image.reshape(1, -1), shape,
        search_radius=2, patch_radius=1, intensity_scale=0.5, distance_scale=1.5,
    )  # fmt: skip
    soft = search.soft_labels(flat, np.flatnonzero(disputed), 2).astype(float)

    def truth(confusion: np.ndarray) -> np.ndarray:
        score = np.repeat(whole.prior_[:, None], soft.shape[2], axis=1)
        for v in range(soft.shape[2]):
            for t in range(2):
                for r in range(4):
                    if flat[r, np.flatnonzero(disputed)[v]] != 255:
                        score[t, v] *= sum(confusion[r, t, o] * soft[r, o, v] for o in range(2))
        return score / score.sum(axis=0)

    counts = np.einsum("tv,rov->rto", truth(whole.confusion_), soft)
    confusion = counts / counts.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(fused.confusion_, confusion, atol=1e-5)
    np.testing.assert_allclose(fused.predict_proba()[0].reshape(2, -1)[:, disputed], truth(confusion), atol=1e-5)


def test_large_cases_are_sampled_and_stay_close(monkeypatch: pytest.MonkeyPatch) -> None:
    masks = shifted_masks(2, (48, 40))
    annotations = at.Annotations.from_masks(np.stack([masks] * 3), np.stack([image_of(masks)] * 3))
    whole = at.NonLocalSTAPLE().fit(annotations)
    monkeypatch.setattr("annotruth.fusion.non_local._CASE_SAMPLES", 200)
    monkeypatch.setattr("annotruth.fusion.non_local._SAMPLES", 300)
    monkeypatch.setattr("annotruth.fusion.non_local._PART", 100)
    part = at.NonLocalSTAPLE().fit(annotations)
    np.testing.assert_allclose(part.confusion_, whole.confusion_, atol=0.05)
    assert (part.predict() == whole.predict()).mean() > 0.98


def test_atlases_registered_badly_are_put_right() -> None:
    rng = np.random.default_rng(0)
    truth = (np.indices((48, 48)).sum(axis=0) // 12 % 2).astype(np.uint8)
    moves = [(0, 2), (2, 0), (-2, 1)]
    masks = np.stack([np.roll(truth, move, axis=(0, 1)) for move in moves])
    look = truth + rng.normal(0, 0.1, truth.shape)
    images = np.stack([look, *(np.roll(look, move, axis=(0, 1)) for move in moves)])
    annotations = at.Annotations.from_masks(masks[None], images[None])
    fused = at.NonLocalSTAPLE(atlases=True, search_radius=3, distance_scale=3.0).fit(annotations)
    assert (fused.predict()[0] == truth).mean() > 0.97
    assert (at.STAPLE().fit(annotations).predict()[0] == truth).mean() < 0.95


def test_unfit_input_is_refused_in_words() -> None:
    assert_refuses_tables_and_single_raters(at.NonLocalSTAPLE(), "DawidSkene")
    masks = shifted_masks()
    with pytest.raises(InputError, match=r"needs the images.*SpatialSTAPLE"):
        at.NonLocalSTAPLE().fit(at.Annotations.from_masks(masks[None]))
    one_image = at.Annotations.from_masks(masks[None], image_of(masks)[None])
    with pytest.raises(InputError, match=r"5 channels.*Found 1.*atlases=False"):
        at.NonLocalSTAPLE(atlases=True).fit(one_image)
    for wrong in ({"search_radius": -1}, {"patch_radius": -1}, {"intensity_scale": 0.0}, {"distance_scale": 0.0}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            at.NonLocalSTAPLE(**wrong).fit(one_image)
