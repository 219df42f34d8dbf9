"""Ranks of methods over several data sets: who is best on average, whatever the scores' ranges are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata

from annotruth.experiments.core.experiment import Table
from annotruth.experiments.core.findings import Finding, by_setting, title_of


def average_ranks(table: Table, metrics: Sequence[str], besides: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Rank rows by their mean over seeds in each setting, 1 = best and ties shared, and average over the settings.

    Parameters
    ----------
    metrics : by which to rank; rows without one are not ranked by it
    besides : rows that are not ranked at all

    Returns
    -------
    A record for each row, the best by the first metric first: its average rank by every metric (None = never had it),
    by the first metric in each setting, its seconds per training on average, and in how many settings it was trained.

    Examples
    --------
    >>> def row(setting, method, accuracy):
    ...     return {"setting": setting, "method": method, "accuracy": {"mean": accuracy}, "wall_time": {"mean": 1.0}}
    >>> rows = [row("a", "x", 0.9), row("a", "y", 0.8), row("b", "x", 0.5), row("b", "y", 0.5)]
    >>> table = {"rows": rows, "metrics": [{"name": "accuracy", "title": "accuracy", "better": "higher"}]}
    >>> [(each["method"], each["ranks"]["accuracy"]) for each in average_ranks(table, ["accuracy"])]
    [('x', 1.25), ('y', 1.75)]
    """
    better = {metric["name"]: metric["better"] for metric in table["metrics"]}
    ranks: dict[tuple[str, str, str], float] = {}
    for setting, rows in by_setting(table).items():
        for metric in metrics:
            scores = {name: row[metric]["mean"] for name, row in rows.items() if metric in row and name not in besides}
            sign = -1 if better[metric] == "higher" else 1
            found = rankdata([sign * score for score in scores.values()])
            ranks |= {(metric, setting, name): float(rank) for name, rank in zip(scores, found)}
    settings = list(by_setting(table))
    trained = [row for row in table["rows"] if "wall_time" in row and row["method"] not in besides]
    records = []
    for name in dict.fromkeys(row["method"] for row in trained):
        seconds = [row["wall_time"]["mean"] for row in trained if row["method"] == name]
        each = {metric: [ranks[metric, s, name] for s in settings if (metric, s, name) in ranks] for metric in metrics}
        records.append(
            {
                "method": name,
                "ranks": {metric: float(np.mean(found)) if found else None for metric, found in each.items()},
                "settings": {setting: ranks.get((metrics[0], setting, name)) for setting in settings},
                "seconds": float(np.mean(seconds)),
                "present": len(seconds),
            }
        )
    return sorted(records, key=lambda record: (record["ranks"][metrics[0]] is None, record["ranks"][metrics[0]]))


def ranked_first(*watched: str) -> Finding:
    """Who is first on average, and where some methods of ours stand."""

    def find(table: Table) -> list[str]:
        ranks = table["ranks"]
        metric = next(iter(ranks[0]["ranks"]))
        title = title_of(table, metric)
        told = [f"{each['method']} ({each['ranks'][metric]:.1f})" for each in ranks[:3]]
        places = [
            f"{each['method']} is number {place} ({each['ranks'][metric]:.1f})"
            for place, each in enumerate(ranks, 1)
            if each["method"] in watched
        ]
        return [
            f"By average rank of {title} over {len(by_setting(table))} data sets, the first of {len(ranks)} methods "
            f"are {', '.join(told)}.",
            f"{'; '.join(places)}." if places else "",
        ][: 2 if places else 1]

    return find
