"""Spatial STAPLE against plain loops, and where it helps."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import ndimage

import annotruth as at
from annotruth.errors import InputError
from annotruth.fusion._em.box_sum import box_sum
from annotruth.fusion._em.spatial_em import LocalProblem, local_confusion, local_truth
from annotruth.parallel.threads import threads


@pytest.mark.parametrize("shape", [(50,), (13, 300), (7, 9, 11), (3, 4, 5, 6)])
@pytest.mark.parametrize("side", [1, 3, 5, 21])
def test_box_sums(shape: tuple[int, ...], side: int) -> None:
    values = np.random.default_rng(0).random(shape).astype(np.float32)
    expected = ndimage.convolve(values.astype(float), np.ones((side,) * len(shape)), mode="constant")
    for count in (1, 3):
        with threads(count):
            found = box_sum(values.ravel().copy(), shape, (side,) * len(shape), np.empty(values.size, np.float32))
        np.testing.assert_allclose(found.reshape(shape), expected, rtol=1e-5, atol=1e-5)


def test_box_sums_of_uneven_windows() -> None:
    values = np.random.default_rng(0).random((8, 9)).astype(np.float32)
    found = box_sum(values.ravel().copy(), (8, 9), (1, 5), np.empty(72, np.float32)).reshape(8, 9)
    np.testing.assert_allclose(found, ndimage.convolve(values, np.ones((1, 5)), mode="constant"), rtol=1e-5)


def by_hand(problem: LocalProblem, posterior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One iteration with windows cut out one by one: new posterior, and the local matrices before it."""
    n_raters, n_classes, _ = problem.confusion.shape
    masks = problem.masks.reshape(n_raters, *problem.shape)
    share = posterior.reshape(n_classes, *problem.shape).astype(float)
    new, maps = np.empty_like(share), np.empty((n_raters, n_classes, n_classes, *problem.shape))
    for place in product(*map(range, problem.shape)):
        cut = tuple(slice(max(0, p - w // 2), p + w // 2 + 1) for p, w in zip(place, problem.window))
        here = share[(slice(None), *cut)].reshape(n_classes, -1)
        prior = (here.sum(axis=1) + problem.shrinkage * problem.prior) / (here.shape[1] + problem.shrinkage)
        score = np.log(prior)
        for rater in range(n_raters):
            labels = masks[rater][cut].ravel()
            counts = np.stack([here[:, labels == j].sum(axis=1) for j in range(n_classes)], axis=1)
            counts += problem.shrinkage * problem.confusion[rater]
            maps[(rater, slice(None), slice(None), *place)] = counts / counts.sum(axis=1, keepdims=True)
            if masks[rater][place] != 255:
                score += np.log(maps[(rater, slice(None), masks[rater][place], *place)])
        new[(slice(None), *place)] = np.exp(score - score.max()) / np.exp(score - score.max()).sum()
    return new.reshape(n_classes, -1), maps


@pytest.mark.parametrize(("shape", "window"), [((8, 9), (3, 5)), ((4, 5, 6), (3, 3, 3))])
def test_local_estimates_against_plain_loops(shape: tuple[int, ...], window: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    n_pixels = int(np.prod(shape))
    masks = rng.integers(0, 3, (4, n_pixels)).astype(np.uint8)
    masks[1, :7] = 255
    fixed = np.zeros(n_pixels, dtype=np.uint8)
    problem = LocalProblem(
        masks, shape, fixed, rng.dirichlet(np.ones(3), (4, 3)), np.array([0.5, 0.3, 0.2]), window, 2.0
    )
    start = rng.dirichlet(np.ones(3), n_pixels).T.astype(np.float32)
    expected, _ = by_hand(problem, start)
    posterior = start.copy()
    assert local_truth(problem, posterior, 1, 0.0) == (1, False)
    np.testing.assert_allclose(posterior, expected, atol=2e-5)
    maps = local_confusion(problem, posterior).reshape(4, 3, 3, *shape)
    np.testing.assert_allclose(maps, by_hand(problem, posterior)[1], atol=2e-5)


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
