"""STEPS: its limit is STAPLE; ranks against plain windows; atlases."""

from __future__ import annotations

import numpy as np
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.fusion.steps import local_agreement, local_correlation

from .mask_data import assert_refuses_tables_and_single_raters, image_of, shifted_masks
from .test_spatial import raters_failing_in_different_places


def windows(shape: tuple[int, ...], side: int):
    """Each pixel's window as a tuple of slices, in order."""
    for place in np.ndindex(shape):
        yield tuple(slice(max(0, p - side // 2), p + side // 2 + 1) for p in place)


@pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_with_all_raters_heard_it_is_staple_on_disputed_pixels(n_classes: int) -> None:
    annotations = at.Annotations.from_masks(shifted_masks(n_classes)[None], classes=n_classes)
    fused, staple = at.STEPS(n_best=4).fit(annotations), at.STAPLE(exclude_consensus=True).fit(annotations)
    np.testing.assert_allclose(fused.predict_proba(), staple.predict_proba(), atol=1e-5)
    np.testing.assert_allclose(fused.confusion_, staple.confusion_, atol=1e-5)


@pytest.mark.filterwarnings("ignore:The estimated truth may be wrong")
def test_with_the_best_heard_it_is_staple_on_their_labels() -> None:
    masks = shifted_masks()
    annotations = at.Annotations.from_masks(masks[None])
    first = at.STAPLE(exclude_consensus=True).fit(annotations).predict()[0]
    disputed = ~np.array([len({*column} - {255}) == 1 for column in masks.reshape(4, -1).T]).reshape(first.shape)
    heard = masks.copy()
    for place, window in zip(np.ndindex(first.shape), windows(first.shape, 5)):
        labelled = [rater for rater in range(4) if masks[rater][place] != 255]
        part = {r: (masks[r][window] == first[window]).sum() / (masks[r][window] != 255).sum() for r in labelled}
        last = sorted(part.values(), reverse=True)[:2][-1]
        for rater in labelled:
            if part[rater] < last:
                heard[(rater, *place)] = 255
    flat = heard[:, disputed]
    expected = at.STAPLE().fit(at.Annotations.from_masks(flat[None], classes=2))
    fused = at.STEPS(n_best=2, window=5).fit(annotations)
    np.testing.assert_allclose(fused.predict_proba()[0][:, disputed], expected.predict_proba()[0], atol=1e-4)
    np.testing.assert_allclose(fused.confusion_, expected.confusion_, atol=1e-4)
    np.testing.assert_array_equal(fused.predict()[0][~disputed], masks[0][~disputed])


@pytest.mark.parametrize("shape", [(9, 8), (5, 6, 4)])
def test_agreement_and_correlation_are_those_of_plain_windows(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    mask, fused = rng.integers(0, 2, (2, *shape)).astype(np.uint8)
    one, other = rng.normal(3, 2, (2, *shape))
    side = (3,) * len(shape)
    agreement = local_agreement(mask.reshape(1, -1), fused.reshape(-1), shape, side)[0]
    correlation = local_correlation(one.reshape(-1), other.reshape(-1), shape, side)
    for number, window in enumerate(windows(shape, 3)):
        assert agreement[number] == pytest.approx((mask[window] == fused[window]).mean())
        expected = np.corrcoef(one[window].reshape(-1), other[window].reshape(-1))[0, 1]
        assert correlation[number] == pytest.approx(expected, abs=1e-4)


def test_better_than_staple_where_raters_fail_in_different_places() -> None:
    masks, truth = raters_failing_in_different_places()
    annotations = at.Annotations.from_masks(masks[None])
    local, whole = at.STEPS(n_best=3).fit(annotations), at.STAPLE().fit(annotations)
    assert (local.predict()[0] != truth).mean() < 0.8 * (whole.predict()[0] != truth).mean()


def test_atlases_whose_image_fits_are_heard() -> None:
    rng = np.random.default_rng(0)
    truth = (np.indices((48, 48)).sum(axis=0) // 8 % 2).astype(np.uint8)
    moves = [(0, 0), (0, 1), (4, 0), (0, 5), (5, 3)]
    masks = np.stack([np.roll(truth, move, axis=(0, 1)) for move in moves])
    look = truth + rng.normal(0, 0.1, truth.shape)
    images = np.stack([look, *(np.roll(look, move, axis=(0, 1)) for move in moves)])
    annotations = at.Annotations.from_masks(masks[None], images[None])
    by_atlas = at.STEPS(n_best=1, ranking="atlases", window=9).fit(annotations)
    assert (by_atlas.predict()[0] == truth).mean() > 0.99
    assert (at.STAPLE().fit(annotations).predict()[0] == truth).mean() < 0.95


def test_unfit_input_is_refused_in_words() -> None:
    assert_refuses_tables_and_single_raters(at.STEPS(), "DawidSkene")
    masks = shifted_masks()
    plain = at.Annotations.from_masks(masks[None])
    with pytest.raises(InputError, match=r"needs the images.*ranking='agreement'"):
        at.STEPS(ranking="atlases").fit(plain)
    with pytest.raises(InputError, match=r"5 channels.*Found 1.*ranking='agreement'"):
        at.STEPS(ranking="atlases").fit(at.Annotations.from_masks(masks[None], image_of(masks)[None]))
    for wrong, message in (({"n_best": 0}, "n_best"), ({"window": 4}, "odd"), ({"ranking": "looks"}, "ranking")):
        with pytest.raises(InputError, match=message):
            at.STEPS(**wrong).fit(plain)
