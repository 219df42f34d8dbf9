"""What tables say of dominance, on tables made by hand."""

import pytest

from annotruth.experiments.tables.tanno2019 import (
    at_most_where_dominant,
    better_below,
    close_where_dominant,
    warns_when_due,
)


def row(setting, method, accuracy, margin, error=0.001, doubted=(0.0, 0.0), skill=0.4):
    def spread(values):
        return {"mean": sum(values) / len(values), "sd": 0.0, "each": list(values)}

    return {
        "setting": setting, "method": method, "accuracy": spread(accuracy), "margin": spread(margin),
        "cm_error": spread([error] * 2), "doubted": spread(doubted), "skill": spread([skill] * 2),
    }  # fmt: skip


@pytest.fixture
def table():
    rows = [
        row("dense, p 0.2", "ours", (0.3, 0.2), (-0.1, -0.2), error=0.5, doubted=(1.0, 1.0), skill=0.2),
        row("dense, p 0.2", "clean", (0.98, 0.98), (-0.1, -0.2), skill=0.2),
        row("dense, p 0.4", "ours", (0.97, 0.5), (0.2, 0.05), doubted=(0.0, 1.0)),
        row("dense, p 0.4", "clean", (0.98, 0.98), (0.2, 0.05)),
        row("dense, p 0.4", "other", (0.9, 0.4), (0.2, 0.05)),
    ]
    return {"rows": rows, "metrics": [{"name": "cm_error", "title": "CM error"}]}


def test_only_runs_with_clear_dominance_are_held_against_a_method(table):
    (sentence,) = close_where_dominant("ours", "clean", {"dense": 0.02})(table)
    assert "(1 runs), ours is 1.00 points below clean" in sentence
    assert "reached" in sentence
    (sentence,) = at_most_where_dominant("ours", "cm_error", 0.005)(table)
    assert "0.0010 (target: at most 0.005, reached)" in sentence


def test_comparisons_are_told_where_raters_are_poor_and_the_truth_is_identified(table):
    (sentence,) = better_below("ours", ("clean",), 0.5)(table)
    assert sentence == "dense, p 0.4: ours is 8.50 points above the best comparison, other."


def test_warnings_are_counted_where_they_are_due_where_not_and_in_between(table):
    due, silent, between = warns_when_due("ours")(table)
    assert "warned in 2 of 2 runs (target: 95%, reached)" in due
    assert "silent in 1 of 1 runs" in silent
    assert between.endswith("warned in 1 of 1 runs.")
