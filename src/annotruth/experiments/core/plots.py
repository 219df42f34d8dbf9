"""Plots of tables: a mark per row and seed, or lines over what was varied."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#f28e00", "#222222")

Rows = list[dict[str, Any]]


def plot(path: Path, table: dict[str, Any]) -> None:
    """Draw a table: what its curves ask for, or else every metric that can be better or worse, and every series."""
    figure = _curves(table) if table["curves"] else _marks(table)
    figure.savefig(path, dpi=110)


def _marks(table: dict[str, Any]) -> Figure:
    """A column of plots for each metric, a line of them for each setting."""
    settings: dict[str, Rows] = {}
    for row in table["rows"]:
        settings.setdefault(row["setting"], []).append(row)
    scored = [
        metric for metric in table["metrics"]
        if (metric["better"] != "neither" or metric["series"]) and not metric["counted"]
    ]  # fmt: skip
    metrics = [metric for metric in scored if any(metric["name"] in row for row in table["rows"])]
    alone = [metric for metric in metrics if not metric["series"]]
    series: dict[str, dict[str, str]] = {}
    for metric in metrics:
        if metric["series"]:
            series.setdefault(metric["series"], {})[metric["name"]] = metric["title"]
    columns, most = len(alone) + len(series), max(map(len, settings.values()))
    size = (2.0 + 3.4 * columns, (1.1 + 0.22 * most) * len(settings))
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(settings), columns, squeeze=False)
    for line, (setting, rows) in zip(grid, settings.items()):
        for number, (axes, metric) in enumerate(zip(line, alone)):
            _mark(axes, rows, metric["name"])
            axes.tick_params(labelleft=number == 0)
            axes.locator_params(axis="x", nbins=5)  # more of them run into each other
            axes.set_title(setting, fontsize=10)
            axes.set_xlabel(f"{metric['title']} ({metric['better']} is better)")
            axes.set_visible(any(metric["name"] in row for row in rows))  # where the truth is not known, say
        for axes, (title, names) in zip(line[len(alone) :], series.items()):
            _steps(axes, rows, names)
            axes.set_title(setting, fontsize=10)
            axes.set_xlabel(title)
    return figure


def _steps(axes: Axes, rows: Rows, metrics: dict[str, str]) -> None:
    """A line over the metrics of a series for each row that has them, with a band of one standard deviation.

    ``metrics`` are titles by name; the words with which all titles begin are not repeated along the axis.
    """
    first, *_ = metrics
    for number, row in enumerate(row for row in rows if first in row):
        points = [(at, row[metric]["mean"], row[metric]["sd"]) for at, metric in enumerate(metrics) if metric in row]
        _line(axes, points, COLOURS[number % len(COLOURS)], row["method"], dashed=number >= len(COLOURS))
    words = [title.split() for title in metrics.values()]
    shared = 0
    while all(len(each) > shared + 1 and each[shared] == words[0][shared] for each in words):
        shared += 1
    names = [" ".join(each[shared:]) for each in words]
    axes.set_xticks(range(len(metrics)), names, rotation=0 if max(map(len, names)) < 4 else 30)
    axes.grid(axis="both", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(fontsize=8 if len(rows) <= len(COLOURS) else 6)


def _mark(axes: Axes, rows: Rows, metric: str) -> None:
    """Mean and seeds of each row, the first row on top."""
    axes.set_yticks(range(len(rows)), [row["method"] for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="both", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    for position, row in enumerate(rows):
        if metric in row:
            each = row[metric]["each"]
            axes.plot(row[metric]["mean"], position, "|", color=COLOURS[0], markersize=13, markeredgewidth=2.5)
            axes.plot(each, [position] * len(each), "o", color=COLOURS[-1], markersize=3, alpha=0.7)


def _curves(table: dict[str, Any]) -> Figure:
    """A column of plots for each group of settings, a line of them for each metric."""
    panels: dict[str, Rows] = {}
    for row in table["rows"]:
        panels.setdefault(row["setting"].split(",")[0], []).append(row)
    curves = table["curves"]
    titles = {metric["name"]: metric["title"] for metric in table["metrics"]}
    metrics = [name for name in curves["metrics"] if any(name in row for row in table["rows"])]
    figure = Figure(figsize=(max(6.4, 5.4 * len(panels)), 3.0 * len(metrics) + 0.5), layout="constrained")
    grid = figure.subplots(len(metrics), len(panels), squeeze=False)
    for column, (panel, rows) in enumerate(panels.items()):
        for line, metric in enumerate(metrics):
            _lines(grid[line][column], [row for row in rows if metric in row], metric, curves["x"])
            if curves.get("shaded"):
                _shade(grid[line][column], rows, curves["x"], curves["shaded"])
            grid[line][column].set_ylabel(titles[metric])
        grid[0][column].set_title(panel)
        grid[-1][column].set_xlabel(curves["title"])
    figure.legend(*grid[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
    return figure


def _lines(axes: Axes, rows: Rows, metric: str, x: str) -> None:
    """One line per name in the rows' ``lines``, with a band of one standard deviation."""
    values = sorted({row["options"][x] for row in rows if x in row["options"]})
    if values:  # of an option, which may range over powers of ten and zero: steps of one width
        axes.set_xticks(range(len(values)), [f"{value:g}" for value in values])
    for number, line in enumerate(dict.fromkeys(line for row in rows for line in row["lines"])):
        mine = [row for row in rows if line in row["lines"]]
        colour = COLOURS[number % len(COLOURS)]
        if values and x not in mine[0]["options"]:
            mean, sd = mine[0][metric]["mean"], mine[0][metric]["sd"]
            axes.axhline(mean, color=colour, linestyle="--", label=line)
            axes.axhspan(mean - sd, mean + sd, color=colour, alpha=0.15, linewidth=0)
            continue
        points = sorted(
            (values.index(row["options"][x]) if values else row[x]["mean"], row[metric]["mean"], row[metric]["sd"])
            for row in mine
        )
        _line(axes, points, colour, line)


def _line(
    axes: Axes, points: Sequence[tuple[float, float, float]], colour: str, label: str, dashed: bool = False
) -> None:
    """A line through places, means and standard deviations, these as a band."""
    at, means, sds = (list(each) for each in zip(*points))
    axes.plot(at, means, "o--" if dashed else "o-", color=colour, markersize=3.5, label=label)
    low, high = ([mean + sign * sd for mean, sd in zip(means, sds)] for sign in (-1, 1))
    axes.fill_between(at, low, high, color=colour, alpha=0.15, linewidth=0)


def _shade(axes: Axes, rows: Rows, x: str, by: str) -> None:
    """Shade where a metric is 0 or less, up to halfway to the next point."""
    places = sorted({row[x]["mean"]: row[by]["mean"] for row in rows if x in row and by in row}.items())
    at = [place for place, _ in places]
    edges = [at[0], *[(low + high) / 2 for low, high in pairwise(at)], at[-1]]
    for number, (_, value) in enumerate(places):
        if value <= 0:
            axes.axvspan(edges[number], edges[number + 1], color="#888888", alpha=0.25, linewidth=0)
