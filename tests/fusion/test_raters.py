"""Credible intervals against sampling; the order of the raters, how sure it is, and errors in words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotruth import STAPLE, Annotations
from annotruth.fusion.raters import confusion_interval, most_frequent_error, ranking, skill_interval

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


def ranked(low: list[float], high: list[float], skill: list[float], labelled: list[int]):
    matrices = [np.eye(2)] * len(low)
    names = [f"r{number}" for number in range(len(low))]
    return ranking(names, matrices, "ab", *(np.array(each) for each in (skill, low, high, labelled)))


def test_ranks_and_how_sure_they_are() -> None:
    table = ranked([0.5, 0.0, 0.75, 0.99, 0.78], [0.5, 1.0, 0.85, 1.0, 0.86], [0.5, 1.0, 0.8, 1.0, 0.82],
                   [5, 0, 5, 5, 5])  # fmt: skip
    assert table.rater.tolist() == ["r3", "r4", "r2", "r0", "r1"]
    assert table["rank"].tolist() == [1, 2, 3, 4, 5]
    # Nothing is known of r1, who labelled nothing and may stand anywhere; r2 and r4 overlap.
    assert table.best_rank.tolist() == [1, 2, 2, 4, 1]
    assert table.worst_rank.tolist() == [2, 4, 4, 5, 5]
    assert table.error.tolist() == ["none"] * 4 + [""]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=1, max_size=6))
def test_bounds_of_ranks_by_counting(intervals: list[tuple[int, int]]) -> None:
    low, high = [min(pair) / 10 for pair in intervals], [max(pair) / 10 for pair in intervals]
    table = ranked(low, high, [(a + b) / 2 for a, b in zip(low, high)], [1] * len(low)).set_index("rater")
    for number in range(len(low)):
        row = table.loc[f"r{number}"]
        assert row.best_rank == 1 + sum(other > high[number] for other in low)
        assert row.worst_rank == len(low) - sum(other < low[number] for other in high)
        assert row.best_rank <= row["rank"] <= row.worst_rank


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ([[0.98, 0.02], [0.79, 0.21]], "calls ink paper: 79 %"),
        ([[0.7, 0.3], [0.06, 0.94]], "calls paper ink: 30 %"),
        ([[1.0, 0.0], [1.0, 0.0]], "calls ink paper: 100 %"),
        ([[0.996, 0.004], [0.0, 1.0]], "none"),
    ],
)
def test_errors_in_words(matrix: list[list[float]], words: str) -> None:
    assert most_frequent_error(np.array(matrix), ["paper", "ink"]) == words


def test_ranking_of_a_fusion() -> None:
    masks = np.zeros((1, 3, 9, 9), dtype=np.uint8)
    masks[0, :2, 2:7, 2:7] = 1
    masks[0, 2, 4, 4] = 1
    table = STAPLE().fit(Annotations.from_masks(masks, classes=["paper", "ink"])).ranking_
    assert table.rater.tolist()[2] == "rater_3"
    assert table.error.tolist()[2] == "calls ink paper: 96 %"
    assert table.labelled.tolist() == [81, 81, 81]
    assert (table.low <= table.skill).all()
