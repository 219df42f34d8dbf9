"""Results on disk: JSON for programs, Markdown for people, a plot for both."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from annotruth.experiments.core.plots import plot
from annotruth.io import atomic

MANY_SEEDS = 10
"""So many are shown one by one, too: a mean hides where a method fails."""


def environment() -> dict[str, Any]:
    """Where and when results were made."""
    names = ("annotruth", "torch", "lightning", "monai", "numpy")
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "hardware": f"{os.cpu_count()} CPU cores, {platform.machine()}, no GPU used, one thread per training",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in names},
    }


def write_results(folder: Path, name: str, table: dict[str, Any]) -> None:
    """Write a table as ``<name>.json``, ``<name>.md`` and ``<name>.png``."""
    with atomic(folder / f"{name}.json") as temporary:
        temporary.write_text(json.dumps(table, indent=1) + "\n")
    with atomic(folder / f"{name}.png") as temporary:
        plot(temporary, table)
    with atomic(folder / f"{name}.md") as temporary:
        temporary.write_text(_markdown(name, table))


def _markdown(name: str, table: dict[str, Any]) -> str:
    """What was found comes first, how it was made last."""
    lines = [f"# {table['title']}", ""]
    if table["findings"]:
        lines += ["## Findings", "", *_listed(table["findings"]), ""]
    if table.get("ranks"):
        lines += ["## Average ranks", "", *_ranks(table), ""]
    for setting in dict.fromkeys(row["setting"] for row in table["rows"]):
        rows = [row for row in table["rows"] if row["setting"] == setting]
        trained = [row for row in rows if row["seeds"]]
        lines += [f"## {setting}", "", *(_rows(table["metrics"], trained) if trained else []), ""]
        if trained and len(trained[0]["seeds"]) >= MANY_SEEDS and not table["metrics"][0]["counted"]:
            lines += [*_each_seed(table["metrics"][0], trained), ""]
        lines += [f"Left out: {row['method']}. {row['refused']}" for row in rows if not row["seeds"]]
        lines += [""] if len(trained) < len(rows) else []
    lines += [f"![{table['title']}]({name}.png)", "", "## How it was made", "", *_listed(_made(name, table)), ""]
    return "\n".join(lines)


def _made(name: str, table: dict[str, Any]) -> list[str]:
    """The command, the machine, notes, settings and data, in sentences."""
    made = table["environment"]
    where = f"{made['hardware']}, Python {made['python']}, PyTorch {made['versions']['torch']}"
    given = {**table["sizes"], **table["training"]}
    settings = ", ".join(f"{key} {value}" for key, value in given.items()) or "all as by default"
    return [
        f"By `{_command(name, table)}` on {made['date']}: {where}.",
        *_earlier(table),
        "Mean ± standard deviation over seeds; the paper's figure beside it where there is one.",
        *table["notes"],
        f"Settings of all rows: {settings}.",
        *(
            f"{setting}: {', '.join(f'{key} {value}' for key, value in own.items())}."
            for setting, own in table.get("scales", {}).items()
        ),
        *(f"Data: {about}." for about in table["data"]),
    ]


def _earlier(table: dict[str, Any]) -> list[str]:
    """Which rows were trained on other days than the table was written."""
    days: dict[str, list[str]] = {}
    for row in table["rows"]:
        for day in row.get("dates", ()):
            if day != table["environment"]["date"] and row["method"] not in days.setdefault(day, []):
                days[day].append(row["method"])
    return [f"Trained on {day}: {', '.join(days[day])}." for day in sorted(days)]


def _listed(sentences: list[str]) -> list[str]:
    return [f"- {sentence}" for sentence in sentences]


def _command(name: str, table: dict[str, Any]) -> str:
    plain = name.removesuffix("-quick").removesuffix("-stand-in")
    folder = table["rows"][0]["settings"]["folder"] is not None
    return f"annotruth reproduce {plain}{' --data FOLDER' * folder}{' --quick' * name.endswith('-quick')}"


def _ranks(table: dict[str, Any]) -> list[str]:
    """Methods by their average rank, the first on top: by every ranked metric, by setting, and how long they train."""
    titles = {metric["name"]: metric["title"] for metric in table["metrics"]}
    first = table["ranks"][0] if table["ranks"] else {"ranks": {}, "settings": {}}
    heads = [
        "method",
        *[f"rank by {titles[name]}" for name in first["ranks"]],
        *first["settings"],
        "seconds",
        "data sets",
    ]
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)]]
    for each in table["ranks"]:
        ranks = [*each["ranks"].values(), *each["settings"].values()]
        shown = ["–" if rank is None else f"{rank:.1f}" for rank in ranks]
        lines += [[each["method"], *shown, f"{each['seconds']:.0f}", str(each["present"])]]
    return [f"| {' | '.join(line)} |" for line in lines]


def _rows(metrics: list[dict[str, Any]], rows: list[dict[str, Any]]) -> list[str]:
    """A table of one setting; a metric that no row has is left out, and so is the paper's column where it is empty."""
    columns: list[tuple[str, list[str]]] = [("method", [row["method"] for row in rows])]
    for metric in metrics:
        name, form = metric["name"], metric["form"]
        if any(name in row for row in rows):
            columns += [(metric["title"], [_cell(row, metric) for row in rows])]
        if any(name in row["paper"] for row in rows):
            figures = [format(row["paper"][name], form) if name in row["paper"] else "–" for row in rows]
            columns += [(f"paper's {metric['title']}", figures)]
    columns += [("seconds", [f"{row['wall_time']['mean']:.0f}" for row in rows])]
    columns += [("seeds", [str(len(row["seeds"])) for row in rows])]
    heads, cells = zip(*columns)
    lines = [heads, ["---", *["---:"] * (len(columns) - 1)], *zip(*cells)]
    return [f"| {' | '.join(line)} |" for line in lines]


def _each_seed(metric: dict[str, Any], rows: list[dict[str, Any]]) -> list[str]:
    """A metric of each seed, a column for each row of the table."""
    rows = [row for row in rows if metric["name"] in row]
    by_seed = [dict(zip(row["seeds"], row[metric["name"]]["each"])) for row in rows]
    heads = [f"{metric['title']}, seed", *(row["method"] for row in rows)]
    lines = [heads, ["---", *["---:"] * len(rows)]]
    for seed in sorted(set().union(*by_seed)):
        lines += [[str(seed), *(format(each[seed], metric["form"]) if seed in each else "–" for each in by_seed)]]
    return [f"| {' | '.join(line)} |" for line in lines]


def _cell(row: dict[str, Any], metric: dict[str, Any]) -> str:
    if metric["name"] not in row:
        return "–"
    value = row[metric["name"]]
    if metric["counted"]:
        return f"{value} of {len(row['seeds'])}"
    spread = f" ± {format(value['sd'], metric['form'].lstrip('+'))}" if len(row["seeds"]) > 1 else ""
    return format(value["mean"], metric["form"]) + spread
