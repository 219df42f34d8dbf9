"""The random field against its own equation and bound."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth.fusion._em.mrf import mean_field
from annotruth.parallel.threads import threads


def random_posterior(shape: tuple[int, ...], n_classes: int = 3) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.ones(n_classes), int(np.prod(shape))).T.astype(np.float32)


def neighbour_sum(q: np.ndarray) -> np.ndarray:
    total = np.zeros_like(q)
    for axis in range(1, q.ndim):
        ahead, behind = [slice(None)] * q.ndim, [slice(None)] * q.ndim
        ahead[axis], behind[axis] = slice(1, None), slice(None, -1)
        total[tuple(ahead)] += q[tuple(behind)]
        total[tuple(behind)] += q[tuple(ahead)]
    return total


@pytest.mark.parametrize("shape", [(40,), (9, 13), (5, 6, 7), (3, 4, 3, 5)])
def test_settles_where_the_equation_holds(shape: tuple[int, ...]) -> None:
    posterior = random_posterior(shape)
    smoothed, _ = mean_field(posterior, shape, 0.4, max_sweeps=500, tol=1e-7)
    q = smoothed.reshape(3, *shape).astype(float)
    score = np.log(posterior.reshape(q.shape)) + 0.4 * neighbour_sum(q)
    expected = np.exp(score - score.max(axis=0))
    np.testing.assert_allclose(q, expected / expected.sum(axis=0), atol=1e-5)


def test_the_bound_never_falls_and_is_what_it_says() -> None:
    shape = (12, 10)
    posterior = random_posterior(shape)
    bounds = [mean_field(posterior, shape, 0.8, max_sweeps=n, tol=0.0)[1] for n in range(8)]
    assert (np.diff(bounds) >= -1e-3).all()
    smoothed, bound = mean_field(posterior, shape, 0.8)
    q = smoothed.reshape(3, *shape).astype(float)
    inner = (q * (np.log(posterior.reshape(q.shape)) - np.log(q))).sum()
    assert bound == pytest.approx(inner + 0.8 * (q * neighbour_sum(q)).sum() / 2, rel=1e-5)


def test_no_strength_no_change_and_certain_pixels_stay() -> None:
    posterior = random_posterior((6, 6))
    np.testing.assert_allclose(mean_field(posterior, (6, 6), 0.0)[0], posterior, atol=1e-6)
    posterior[:, 0] = [0, 1, 0]
    assert mean_field(posterior, (6, 6), 5.0)[0][:, 0].tolist() == [0, 1, 0]


def test_threads_change_no_bit() -> None:
    posterior = random_posterior((1100, 12))
    found = []
    for count in (1, 4):
        with threads(count):
            found.append(mean_field(posterior, (1100, 12), 0.5))
    assert found[0][0].tobytes() == found[1][0].tobytes()
    assert found[0][1] == found[1][1]
