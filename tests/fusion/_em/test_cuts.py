"""Graph cuts against all labellings there are."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from annotruth.fusion._em.cuts import cut_labels, given_neighbours

pytest.importorskip("maxflow")


def value(posterior: np.ndarray, labels: np.ndarray, shape: tuple[int, ...], strength: float) -> float:
    grid = labels.reshape(shape)
    alike = sum(int((np.diff(grid.astype(int), axis=axis) == 0).sum()) for axis in range(len(shape)))
    return float(np.log(posterior[labels, np.arange(len(labels))]).sum()) + strength * alike


@pytest.mark.parametrize(
    ("n_classes", "shape"), [(2, (3, 4)), (2, (2, 2, 3)), (2, (9,)), (3, (2, 3)), (3, (7,)), (4, (2, 3))]
)
@pytest.mark.parametrize("strength", [0.4, 1.2])
def test_best_of_all_labellings(n_classes: int, shape: tuple[int, ...], strength: float) -> None:
    rng, n_pixels = np.random.default_rng(n_classes + len(shape)), int(np.prod(shape))
    every = np.array(list(product(range(n_classes), repeat=n_pixels)))
    for _ in range(2):
        posterior = rng.dirichlet(np.full(n_classes, 0.7), n_pixels).T
        scores = np.log(posterior)[every, np.arange(n_pixels)].sum(axis=1)
        grids = every.reshape(-1, *shape)
        for axis in range(len(shape)):
            scores = scores + strength * (np.diff(grids, axis=axis + 1) == 0).sum(axis=tuple(range(1, grids.ndim)))
        labels = cut_labels(posterior, shape, strength)
        found = value(posterior, labels, shape, strength)
        if n_classes == 2:
            assert found == pytest.approx(scores.max())
        else:  # expansions are within a factor of the best; on so few pixels, close to it
            assert found >= scores.max() - 0.5
        given, told = given_neighbours(posterior, labels, shape, strength)
        assert told == pytest.approx(found)
        np.testing.assert_array_equal(given.argmax(axis=0), labels)


def test_certain_pixels_stay() -> None:
    posterior = np.array([[1.0, 0.6, 0.0], [0.0, 0.4, 1.0]])
    np.testing.assert_array_equal(cut_labels(posterior, (3,), 5.0), [0, 0, 1])
    given, _ = given_neighbours(posterior, np.array([0, 0, 1], dtype=np.uint8), (3,), 5.0)
    np.testing.assert_allclose(given[:, 1], posterior[:, 1], atol=1e-6)
