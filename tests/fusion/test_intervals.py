"""Credible intervals against sampling."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth.fusion.raters import confusion_interval, skill_interval

COUNTS = np.array([[[90.0, 8.0, 2.0], [5.0, 20.0, 0.0], [0.0, 0.0, 0.0]]])


def samples(counts: np.ndarray, size: int = 200_000) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.stack([rng.dirichlet(1 + row, size) for row in counts], axis=1)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_entries_against_sampled_dirichlets(level: float) -> None:
    low, high = confusion_interval(COUNTS, level)
    drawn = samples(COUNTS[0])
    np.testing.assert_allclose(low[0], np.quantile(drawn, (1 - level) / 2, axis=0), atol=0.01)
    np.testing.assert_allclose(high[0], np.quantile(drawn, (1 + level) / 2, axis=0), atol=0.01)


@pytest.mark.parametrize("counts", [COUNTS, 20 * COUNTS + 3])
def test_skill_against_sampled_dirichlets(counts: np.ndarray) -> None:
    low, high = skill_interval(counts)
    drawn = np.trace(samples(counts[0]), axis1=1, axis2=2) / 3
    np.testing.assert_allclose([low[0], high[0]], np.quantile(drawn, [0.025, 0.975]), atol=0.02)


def test_one_coin_raters_pool_their_rows() -> None:
    low, high = skill_interval(COUNTS, one_coin=True)
    drawn = np.random.default_rng(0).beta(1 + 110, 1 + 15, 200_000)
    np.testing.assert_allclose([low[0], high[0]], np.quantile(drawn, [0.025, 0.975]), atol=0.005)
    entries_low, entries_high = confusion_interval(COUNTS, one_coin=True)
    np.testing.assert_allclose(entries_low[0, 0, 0], low[0])
    np.testing.assert_allclose(entries_high[0, 1, 0], (1 - low[0]) / 2)


def test_one_class_is_certain() -> None:
    assert skill_interval(np.ones((2, 1, 1)))[0].tolist() == [1, 1]
    assert confusion_interval(np.ones((2, 1, 1)))[1].tolist() == [[[1]], [[1]]]
