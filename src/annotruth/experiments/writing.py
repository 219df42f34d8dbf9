"""Results on disk: JSON for programs, Markdown for people, a plot for both."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from annotruth.io import atomic

METRICS = {"dice": "foreground Dice", "cm_rmse": "CM RMSE", "wall_time": "seconds"}


def environment() -> dict[str, Any]:
    """Where and when results were made."""
    names = ("annotruth", "torch", "lightning", "monai", "numpy")
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "hardware": f"{os.cpu_count()} CPU cores, {platform.machine()}, no GPU used",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in names},
    }


def write_results(folder: Path, name: str, table: dict[str, Any]) -> None:
    """Write a table as ``<name>.json``, ``<name>.md`` and ``<name>.png``."""
    with atomic(folder / f"{name}.json") as temporary:
        temporary.write_text(json.dumps(table, indent=1) + "\n")
    _plot(folder / f"{name}.png", table)
    with atomic(folder / f"{name}.md") as temporary:
        temporary.write_text(_markdown(name, table))


def _markdown(name: str, table: dict[str, Any]) -> str:
    made = table["environment"]
    lines = [f"# {table['title']}", ""]
    command = name.removesuffix("-quick") + (" --quick" if name.endswith("-quick") else "")
    where = f"{made['hardware']}, Python {made['python']}, PyTorch {made['versions']['torch']}"
    lines += [f"Made by `annotruth reproduce {command}` on {made['date']}: {where}."]
    lines += ["Mean ± standard deviation over seeds; the paper's figure beside it where there is one."]
    lines += [*table["notes"], ""]
    for setting in dict.fromkeys(row["setting"] for row in table["rows"]):
        rows = [row for row in table["rows"] if row["setting"] == setting]
        shown = [metric for metric in METRICS if metric in rows[0]]
        lines += [f"## {setting}", ""]
        lines += [f"| method | {' | '.join(METRICS[m] for m in shown)} | paper's Dice | swapped | seeds |"]
        lines += [f"| --- |{' ---: |' * (len(shown) + 3)}"]
        for row in rows:
            cells = [_cell(metric, row[metric]) for metric in shown]
            paper = f"{row['paper']['dice']:.3f}" if "dice" in row["paper"] else "–"
            count = len(row["seeds"])
            lines += [f"| {row['method']} | {' | '.join(cells)} | {paper} | {row['swapped']} of {count} | {count} |"]
        lines += [""]
    settings = ", ".join(f"{key} {value}" for key, value in table["training"].items())
    return "\n".join([*lines, f"![{table['title']}]({name}.png)", "", f"Training: {settings or 'defaults'}.", ""])


def _cell(metric: str, spread: dict[str, float]) -> str:
    if metric == "wall_time":
        return f"{spread['mean']:.0f}"
    return f"{spread['mean']:.4f} ± {spread['sd']:.4f}"


def _plot(path: Path, table: dict[str, Any]) -> None:
    from matplotlib.figure import Figure

    settings = list(dict.fromkeys(row["setting"] for row in table["rows"]))
    figure = Figure(figsize=(5.2 * len(settings), 3.6), layout="constrained")
    for axes, setting in zip(figure.subplots(1, len(settings), squeeze=False)[0], settings):
        rows = [row for row in table["rows"] if row["setting"] == setting][::-1]
        axes.barh(range(len(rows)), [row["dice"]["mean"] for row in rows], color="#4477aa", alpha=0.75)
        for position, row in enumerate(rows):
            axes.plot(row["dice"]["each"], [position] * len(row["seeds"]), "o", color="#222222", markersize=3)
        axes.set_yticks(range(len(rows)), [row["method"] for row in rows])
        low = min(min(row["dice"]["each"]) for row in rows)
        axes.set_xlim(max(0.0, low - 0.1), 1.0)
        axes.set_xlabel("foreground Dice (points: seeds)")
        axes.set_title(setting)
    with atomic(path) as temporary:
        figure.savefig(temporary, dpi=110)
