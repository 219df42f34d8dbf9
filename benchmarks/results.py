"""The table, its numbers and its plot, written to a folder."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from benchmarks.data import SEED
from benchmarks.measure import ROOT, Row, machine


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


def write_table(folder: Path, name: str, title: str, command: str, rows: list[dict[str, Any]], words: str = "") -> None:
    """Print a table, and write it to <name>.md and .json with the command that makes it and some words on it."""
    heads, about = list(rows[0]), machine()
    lines = [heads, ["---"] * len(heads), *([str(row[head]) for head in heads] for row in rows)]
    table = "\n".join("| " + " | ".join(each) + " |" for each in lines)
    print(table)
    told = ", ".join(f"{key} {value}" for key, value in about.items())
    page = f"# {title}\n\nMade by `{command}`. {words}".rstrip() + f"\n\n{table}\n\n{told}.\n"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(page)
    content = json.dumps({"machine": about, "rows": rows}, indent=2, ensure_ascii=False)
    (folder / f"{name}.json").write_text(content + "\n")


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


def report(
    name: str,
    title: str,
    before: str,
    after: str,
    rows: Iterable[Row],
    seed: int,
    folder: Path = ROOT / "docs" / "results",
) -> int:
    """Measure the rows, print each, and write them to ``docs/results/<name>.md`` and ``.json`` between two paragraphs.

    Gives 0 if every target was reached, else 1: what the process exits with.
    """
    import torch  # not above: label fusion is measured without it

    measured = []
    for row in rows:
        print(" | ".join(line(row)), flush=True)
        measured.append(row)
    about = {name: value for name, value in machine().items() if name not in ("numba", "SimpleITK", "crowd-kit")}
    about |= {"torch": version("torch"), "threads": torch.get_num_threads()}
    found = {"machine": about, "seed": seed, "rows": [asdict(row) | {"passed": row.passed} for row in measured]}
    parts = [f"# {title}", before, "\n".join(_table(measured)), after, _measured_on(about, seed)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    (folder / f"{name}.md").write_text("\n\n".join(part for part in parts if part) + "\n")
    return 1 if any(row.passed is False for row in measured) else 0


def _table(rows: list[Row]) -> list[str]:
    heads = ["work", "beside", "measured", "target", "reached", "behind it"]
    return ["| " + " | ".join(cells) + " |" for cells in [heads, ["---"] * len(heads), *map(line, rows)]]


def _measured_on(about: dict[str, Any], seed: int) -> str:
    return f"Measured on: {', '.join(f'{name} {value}' for name, value in about.items())}. Seed {seed}."


def _page(rows: list[Row], compiling: dict[str, float], about: dict[str, Any], notes: list[str]) -> str:
    return "\n".join(
        [
            "# Speed of label fusion",
            "",
            "Made by `make bench`. Each ratio compares two things measured in the same run, each at its best of "
            "several repeats (the slow peers' of two). Times of fusion are of `fit` and `predict_proba` together, or "
            "of `fit` and `predict` where labels are the result.",
            "",
            *_table(rows),
            "",
            "![How many times faster than peers, and time by number of answers](fusion-speed.png)",
            "",
            f"The first fusion on a new machine compiles for {compiling['empty']:.1f} s. The compiled code is kept on "
            f"disk: the first fusion of later processes takes {compiling['kept']:.2f} s longer than the next.",
            "",
            *[f"{note}\n" for note in notes],
            _measured_on(about, SEED),
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
