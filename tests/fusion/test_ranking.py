"""The order of the raters, how sure it is, and errors in words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotruth import STAPLE, Annotations
from annotruth.fusion.raters import most_frequent_error, ranking


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
