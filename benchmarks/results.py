"""The table, its numbers and its plot, written to a folder."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from benchmarks.data import SEED
from benchmarks.measure import Row


def write(folder: Path, rows: list[Row], growth: dict[int, float], compiling: dict[str, float], about: dict[str, Any],
          notes: list[str]) -> None:  # fmt: skip
    """Write fusion-speed.md, .json and .png."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {
        "machine": about,
        "seed": SEED,
        "compiling": compiling,
        "notes": notes,
        "rows": [asdict(row) | {"passed": row.passed} for row in rows],
        "Dawid-Skene seconds by answers": growth,
    }
    (folder / "fusion-speed.json").write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    (folder / "fusion-speed.md").write_text(_page(rows, compiling, about, notes))
    _plot(folder / "fusion-speed.png", rows, growth)


def line(row: Row) -> list[str]:
    """One row of the table as words."""
    sign = "≤" if row.at_most else "≥"
    behind = "; ".join(f"{name} {_number(value)}" for name, value in row.details.items())
    return [
        row.work,
        row.peer,
        f"{row.value:.3g} {row.unit}",
        "none" if row.target is None else f"{sign} {row.target:g}",
        {True: "yes", False: "no", None: "–"}[row.passed],
        behind,
    ]


def _page(rows: list[Row], compiling: dict[str, float], about: dict[str, Any], notes: list[str]) -> str:
    heads = ["work", "beside", "measured", "target", "reached", "behind it"]
    table = ["| " + " | ".join(cells) + " |" for cells in [heads, ["---"] * len(heads), *map(line, rows)]]
    where = ", ".join(f"{name} {value}" for name, value in about.items())
    return "\n".join(
        [
            "# Speed of label fusion",
            "",
            "Made by `make bench`. Each ratio compares two things measured in the same run, each at its best of "
            "several repeats (the slow peers' of two). Times of fusion are of `fit` and `predict_proba` together, or "
            "of `fit` and `predict` where labels are the result.",
            "",
            *table,
            "",
            "![How many times faster than peers, and time by number of answers](fusion-speed.png)",
            "",
            f"The first fusion on a new machine compiles for {compiling['empty']:.1f} s. The compiled code is kept on "
            f"disk: the first fusion of later processes takes {compiling['kept']:.2f} s longer than the next.",
            "",
            *[f"{note}\n" for note in notes],
            f"Measured on: {where}. Seed {SEED}.",
            "",
        ]
    )


def _plot(path: Path, rows: list[Row], growth: dict[int, float]) -> None:
    faster = [row for row in rows if row.unit == "× faster"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained", width_ratios=[3, 2])
    names = [f"{row.work.split(',')[0]}\nbeside {row.peer}" for row in faster]
    bars = left.barh(names, [row.value for row in faster], color="#3b6ea5")
    left.bar_label(bars, [f"{row.value:.0f}×" for row in faster], label_type="center", color="white", weight="bold")
    for place, row in enumerate(faster):
        if row.target is not None:
            left.plot([row.target] * 2, [place - 0.4, place + 0.4], color="#c8553d", label=None if place else "target")
    left.set(xscale="log", xlabel="times faster than the peer", xlim=(1, 3 * max(row.value for row in faster)))
    left.invert_yaxis()
    left.legend(loc="lower right", frameon=False)
    sizes, times = list(growth), list(growth.values())
    right.plot(sizes, times, "o-", color="#3b6ea5", label="Dawid-Skene, 20,000 workers, 10 classes")
    right.plot(sizes, [times[-1] * size / sizes[-1] for size in sizes], "--", color="grey", label="proportional")
    right.set(xscale="log", yscale="log", xlabel="answers", ylabel="seconds for 20 iterations")
    right.legend(frameon=False, fontsize=8)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
