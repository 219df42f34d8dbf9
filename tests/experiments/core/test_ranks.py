"""Ranks over data sets, from figures made by hand."""

from __future__ import annotations

import pytest

from annotruth.experiments.core.ranks import average_ranks, ranked_first


def row(setting, method, **scores):
    return {
        "setting": setting, "method": method, "wall_time": {"mean": 2.0},
        **{name: {"mean": score} for name, score in scores.items()},
    }  # fmt: skip


@pytest.fixture
def table():
    rows = [
        row("a", "ours", accuracy=0.9, error=0.1), row("a", "vote", accuracy=0.8, error=0.3),
        row("a", "clean", accuracy=1.0),
        row("b", "ours", accuracy=0.7, error=0.2), row("b", "vote", accuracy=0.7),
        row("b", "late", accuracy=0.6, error=0.1),
        {"setting": "a", "method": "late", "refused": "It needs a diagnosis."},
    ]  # fmt: skip
    metrics = [
        {"name": "accuracy", "title": "accuracy", "better": "higher"},
        {"name": "error", "title": "error", "better": "lower"},
    ]
    return {"rows": rows, "metrics": metrics}


def test_ranks_are_averaged_over_settings_and_ties_shared(table):
    ranks = average_ranks(table, ["accuracy", "error"], ["clean"])
    assert [each["method"] for each in ranks] == ["ours", "vote", "late"]
    assert [each["ranks"]["accuracy"] for each in ranks] == [1.25, 1.75, 3.0]
    assert ranks[0]["ranks"]["error"] == 1.5  # lower is better: first in a, second in b
    assert ranks[0]["settings"] == {"a": 1.0, "b": 1.5}


def test_who_was_left_out_of_a_setting_is_ranked_in_the_others(table):
    late = average_ranks(table, ["accuracy"], ["clean"])[-1]
    assert (late["settings"], late["present"], late["seconds"]) == ({"a": None, "b": 3.0}, 1, 2.0)


def test_the_first_are_named_and_where_ours_stands(table):
    table["ranks"] = average_ranks(table, ["accuracy"], ["clean"])
    first, second = ranked_first("vote")(table)
    assert "over 2 data sets, the first of 3 methods are ours (1.2), vote (1.8), late (3.0)" in first
    assert second == "vote is number 2 (1.8)."
