"""COLLATE against sums over every truth, level and origin of a label; against ITK's STAPLE; where it helps."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import annotruth as at
from annotruth.errors import InputError

from .mask_data import assert_refuses_tables_and_single_raters, shifted_masks


def by_brute_force(
    masks: np.ndarray, n_classes: int, levels: int, rounds: int, estimated: bool
) -> tuple[np.ndarray, ...]:
    """Posterior (classes, pixels), hard matrices and shares of levels, pixel by pixel in plain loops."""
    flat = masks.reshape(len(masks), -1)
    n_raters, n_pixels = flat.shape
    shares = np.array([[(column == k).sum() for k in range(n_classes)] / (column != 255).sum() for column in flat.T]).T
    prior = shares.mean(axis=1)
    hard = np.array([[[shares[t, m == o].sum() for o in range(n_classes)] for t in range(n_classes)] for m in flat])
    hard /= hard.sum(axis=2, keepdims=True)
    level = np.full(levels, 1 / levels)
    for turn in range(rounds):
        posterior, drawn, new_level = np.zeros((n_classes, n_pixels)), np.zeros_like(hard), np.zeros(levels)
        for v in range(n_pixels):
            joint = np.zeros((levels, n_classes))
            by_matrix = np.zeros((levels, n_classes, n_raters))
            for i, t in product(range(levels), range(n_classes)):
                certain = i / max(levels - 1, 1)
                joint[i, t] = level[i] * prior[t]
                for r in range(n_raters):
                    if flat[r, v] != 255:
                        own = (1 - certain) * hard[r, t, flat[r, v]]
                        total = own + certain * (flat[r, v] == t)
                        joint[i, t] *= total
                        by_matrix[i, t, r] = own / total if total else 0.0
            joint /= joint.sum()
            posterior[:, v] = joint.sum(axis=0)
            new_level += joint.sum(axis=1) / n_pixels
            for i, t, r in product(range(levels), range(n_classes), range(n_raters)):
                if flat[r, v] != 255:
                    drawn[r, t, flat[r, v]] += joint[i, t] * by_matrix[i, t, r]
        if turn < rounds - 1:
            hard, level = drawn / drawn.sum(axis=2, keepdims=True), new_level
            prior = posterior.mean(axis=1) if estimated else prior
    return posterior, hard, level


@pytest.mark.filterwarnings("ignore:.*did not settle", "ignore::annotruth.errors.IdentifiabilityWarning")
@pytest.mark.parametrize("prior", ["votes", "estimated"])
@pytest.mark.parametrize(("n_classes", "levels", "shape"), [(2, 2, (9, 8)), (3, 3, (7, 9)), (2, 4, (5, 4, 4))])
def test_same_as_by_brute_force(n_classes: int, levels: int, shape: tuple[int, ...], prior: str) -> None:
    masks = shifted_masks(n_classes, shape)
    posterior, hard, share = by_brute_force(masks, n_classes, levels, rounds=6, estimated=prior == "estimated")
    fused = at.COLLATE(levels=levels, max_iter=6, tol=0.0, prior=prior).fit(
        at.Annotations.from_masks(masks[None], classes=n_classes)
    )
    np.testing.assert_allclose(fused.predict_proba()[0].reshape(n_classes, -1), posterior, atol=1e-5)
    np.testing.assert_allclose(fused.hard_confusion_, hard, atol=1e-6)
    np.testing.assert_allclose(fused.level_share_, share, atol=1e-6)


@pytest.mark.filterwarnings("ignore:The estimated truth may be wrong")
def test_one_level_is_staple_also_itks() -> None:
    simple_itk = pytest.importorskip("SimpleITK")
    masks = shifted_masks()[:3]
    fused = at.COLLATE(levels=1, tol=1e-14, prior="votes").fit(at.Annotations.from_masks(masks[None]))
    peer = simple_itk.STAPLEImageFilter()
    peer.SetForegroundValue(1)
    expected = simple_itk.GetArrayFromImage(peer.Execute([simple_itk.GetImageFromArray(mask) for mask in masks]))
    np.testing.assert_allclose(fused.predict_proba()[0, 1], expected, atol=1e-4)
    with_gaps = at.Annotations.from_masks(shifted_masks(3)[None], classes=3)
    one, staple = at.COLLATE(levels=1, tol=1e-14, prior="votes").fit(with_gaps), at.STAPLE().fit(with_gaps)
    np.testing.assert_allclose(one.predict_proba(), staple.predict_proba(), atol=1e-4)
    np.testing.assert_allclose(one.confusion_, staple.confusion_, atol=1e-5)


def test_obvious_pixels_do_not_make_raters_good() -> None:
    rng = np.random.default_rng(0)
    column = np.indices((64, 512))[1]
    truth, hard = (column > 255).astype(np.uint8), np.abs(column - 255.5) < 16
    errors = (0.05, 0.3, 0.3, 0.35)
    masks = np.stack([truth ^ (hard & (rng.random(truth.shape) < error)) for error in errors]).astype(np.uint8)
    annotations = at.Annotations.from_masks(masks[None])
    levels, plain = at.COLLATE().fit(annotations), at.STAPLE().fit(annotations)
    skill = np.diagonal(levels.hard_confusion_, axis1=1, axis2=2).mean(axis=1)
    np.testing.assert_allclose(skill, 1 - np.array(errors), atol=0.05)
    assert (plain.skill_ > 0.9).all()
    assert levels.difficulty_item(0)[hard].mean() > 10 * levels.difficulty_item(0)[~hard].mean()


def test_cases_on_their_own_have_levels_of_their_own() -> None:
    masks = np.stack([shifted_masks(2, seed=seed) for seed in (0, 1)])
    fused = at.COLLATE(scope="case").fit(at.Annotations.from_masks(masks))
    assert fused.level_share_.shape == (2, 2)
    assert fused.hard_confusion_.shape == (2, 4, 2, 2)
    assert fused.difficulty_item(1).shape == (24, 20)


def test_unfit_input_is_refused_in_words() -> None:
    assert_refuses_tables_and_single_raters(at.COLLATE(), "GLAD")
    with pytest.raises(InputError, match="levels must be at least 1"):
        at.COLLATE(levels=0).fit(at.Annotations.from_masks(shifted_masks()[None]))
