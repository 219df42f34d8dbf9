"""Estimates around each pixel, against plain loops."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from annotruth.fusion._em.spatial_em import LocalProblem, local_confusion, local_truth


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
