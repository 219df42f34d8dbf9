"""Plots of tables: a bar per row, or lines over what was varied."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb", "#222222")


def plot(path: Path, table: dict[str, Any]) -> None:
    """Draw a table: the settings side by side; of a sweep each metric below the other, of others the first metric."""
    from matplotlib.figure import Figure

    panels: dict[str, list[dict[str, Any]]] = {}
    for row in table["rows"]:
        panels.setdefault(row["setting"].split(",")[0] if table["curves"] else row["setting"], []).append(row)
    titles = {metric["name"]: metric["title"] for metric in table["metrics"]}
    drawn = [name for name in table["curves"]["metrics"] if name in table["rows"][0]] if table["curves"] else ["first"]
    height = 3.0 if table["curves"] else 1.2 + 0.24 * max(map(len, panels.values()))
    figure = Figure(figsize=(5.4 * len(panels), height * len(drawn) + 0.4), layout="constrained")
    grid = figure.subplots(len(drawn), len(panels), squeeze=False)
    for column, (panel, rows) in enumerate(panels.items()):
        grid[0][column].set_title(panel)
        if not table["curves"]:
            _bars(grid[0][column], rows, table["metrics"][0])
            continue
        for line, metric in enumerate(drawn):
            _lines(grid[line][column], rows, metric, table["curves"]["x"])
            grid[line][column].set_ylabel(titles[metric])
        grid[-1][column].set_xlabel(table["curves"]["title"])
    if table["curves"]:
        figure.legend(*grid[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
    figure.savefig(path, dpi=110)


def _bars(axes: Axes, rows: list[dict[str, Any]], metric: dict[str, Any]) -> None:
    rows = rows[::-1]
    name = metric["name"]
    axes.barh(range(len(rows)), [row[name]["mean"] for row in rows], color=COLOURS[0], alpha=0.75)
    for position, row in enumerate(rows):
        axes.plot(row[name]["each"], [position] * len(row[name]["each"]), "o", color="#222222", markersize=3)
    axes.set_yticks(range(len(rows)), [row["method"] for row in rows])
    low = min(min(row[name]["each"]) for row in rows)
    axes.set_xlim(max(0.0, low - 0.1), 1.0)
    axes.set_xlabel(f"{metric['title']} (points: seeds)")


def _lines(axes: Axes, rows: list[dict[str, Any]], metric: str, x: str) -> None:
    """One line per name in the rows' ``lines``, with a band of one standard deviation."""
    rows = [row for row in rows if metric in row]
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
        at, mean, sd = (list(each) for each in zip(*points))
        axes.plot(at, mean, "o-", color=colour, markersize=3.5, label=line)
        low, high = ([m + sign * s for m, s in zip(mean, sd)] for sign in (-1, 1))
        axes.fill_between(at, low, high, color=colour, alpha=0.15, linewidth=0)
