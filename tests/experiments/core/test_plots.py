"""Plots show what the table holds."""

import pytest

from annotruth.experiments.core import plots

METRICS = [
    {"name": "dice", "title": "Dice", "better": "higher", "counted": False, "series": ""},
    {"name": "ged", "title": "GED", "better": "lower", "counted": False, "series": ""},
    {"name": "swapped", "title": "swapped", "better": "lower", "counted": True, "series": ""},
    {"name": "rater_dice", "title": "raters' Dice", "better": "neither", "counted": False, "series": ""},
]


def row(setting, method, dice, weight=None, lines=None):
    options = {} if weight is None else {"trace_weight": weight}
    spread = {"mean": dice, "sd": 0.01, "each": [dice - 0.01, dice + 0.01]}
    return {
        "setting": setting, "method": method, "options": options, "lines": lines or [method], "dice": spread,
        "rater_dice": {"mean": 0.5 if "weak" in setting else 0.8}, "swapped": 0,
    }  # fmt: skip


def lines_of(axes):
    return {line.get_label(): line.get_xydata().tolist() for line in axes.lines}


def test_marks_leave_out_metrics_that_no_row_has():
    rows = [row("dense", "clean", 0.9), row("dense", "mean", 0.7), row("one-label", "clean", 0.8)]
    figure = plots._marks({"metrics": METRICS, "rows": rows, "curves": None})
    assert [axes.get_xlabel() for axes in figure.axes] == ["Dice (higher is better)"] * 2
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["clean", "mean"]


def test_a_series_is_one_plot_with_a_line_for_each_row_that_has_it():
    steps = [{**METRICS[0], "name": f"after_{i}", "series": "after each step"} for i in range(2)]
    ours = {**row("dense", "ours", 0.9), "after_0": {"mean": 0.6, "sd": 0.1}, "after_1": {"mean": 0.9, "sd": 0.1}}
    table = {"metrics": [*METRICS, *steps], "rows": [row("dense", "mean", 0.7), ours], "curves": None}
    marks, series = plots._marks(table).axes
    assert [axes.get_xlabel() for axes in (marks, series)] == ["Dice (higher is better)", "after each step"]
    assert lines_of(series) == {"ours": [[0, 0.6], [1, 0.9]]}


def test_a_series_that_is_neither_better_nor_worse_is_drawn_with_its_titles():
    raters = [
        {**METRICS[3], "name": f"rater_{i}", "title": f"with {name}", "series": "Dice with each rater's own masks"}
        for i, name in enumerate(("ann", "bob"))
    ]
    ours = {**row("dense", "ours", 0.9), "rater_0": {"mean": 0.6, "sd": 0.1}, "rater_1": {"mean": 0.9, "sd": 0.1}}
    _, series = plots._marks({"metrics": [METRICS[0], *raters], "rows": [ours], "curves": None}).axes
    assert [tick.get_text() for tick in series.get_xticklabels()] == ["ann", "bob"]
    assert lines_of(series) == {"ours": [[0, 0.6], [1, 0.9]]}


def test_an_option_is_drawn_in_even_steps_beside_rows_without_it():
    rows = [
        row("dense", "default", 0.9),
        row("dense", "0", 0.8, 0.0, ["plain", "posterior"]),
        row("dense", "plain 0.4", 0.5, 0.4, ["plain"]),
        row("dense", "posterior 0.4", 0.85, 0.4, ["posterior"]),
    ]
    curves = {"x": "trace_weight", "title": "weight", "metrics": ["dice", "cm_rmse"]}
    (axes,) = plots._curves({"metrics": METRICS, "rows": rows, "curves": curves}).axes
    drawn = lines_of(axes)
    assert drawn["plain"] == [[0, 0.8], [1, 0.5]]
    assert drawn["posterior"] == [[0, 0.8], [1, 0.85]]
    assert {height for _, height in drawn["default"]} == {0.9}
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0", "0.4"]


def test_what_was_measured_is_drawn_where_it_lies_and_settings_share_a_plot():
    rows = [row("dense, weak", "mean", 0.6), row("dense, strong", "mean", 0.9), row("one-label, weak", "mean", 0.5)]
    curves = {"x": "rater_dice", "title": "raters' Dice", "metrics": ["dice"]}
    first, second = plots._curves({"metrics": METRICS, "rows": rows, "curves": curves}).axes
    assert lines_of(first)["mean"] == [[0.5, 0.6], [0.8, 0.9]]
    assert second.get_title() == "one-label"


@pytest.mark.parametrize("curves", [None, {"x": "trace_weight", "title": "weight", "metrics": ["dice"]}])
def test_a_plot_is_written(tmp_path, curves):
    plots.plot(tmp_path / "it.png", {"metrics": METRICS, "rows": [row("dense", "mean", 0.6, 0.1)], "curves": curves})
    assert (tmp_path / "it.png").stat().st_size > 1000
