"""What tables of coarse drawings say: whether one row leads another, and whether a curve rises."""

from __future__ import annotations

from itertools import pairwise

from annotruth.experiments.core.experiment import Table
from annotruth.experiments.core.findings import Finding, away, by_setting, points, reached


def leads(method: str, other: str, least: float, metric: str) -> Finding:
    """Is a row at least so far above another?"""

    def find(table: Table) -> list[str]:
        title = next(each["title"] for each in table["metrics"] if each["name"] == metric)
        sentences = []
        for setting, rows in by_setting(table).items():
            gain = rows[method][metric]["mean"] - rows[other][metric]["mean"]
            target = f"at least {points(least)} above" if least else "above"
            sentences.append(
                f"{setting}: {method} is {away(gain)} {other} in {title} (target: {target}, {reached(gain > least)})."
            )
        return sentences

    return find


def rises(line: str, x: str, metric: str) -> Finding:
    """Does a curve rise, up to what seeds make?"""

    def find(table: Table) -> list[str]:
        title = next(each["title"] for each in table["metrics"] if each["name"] == metric)
        sentences = []
        for setting, rows in by_setting(table).items():
            mine = sorted((row for row in rows.values() if line in row["lines"]), key=lambda row: row["options"][x])
            falls = [
                f"from {before['options'][x]:g} to {after['options'][x]:g} by "
                f"{points(before[metric]['mean'] - after[metric]['mean'])}"
                for before, after in pairwise(mine)
                if before[metric]["mean"] - after[metric]["mean"] > max(before[metric]["sd"], after[metric]["sd"])
            ]
            means = ", ".join(f"{row['options'][x]:g}: {row[metric]['mean']:.3f}" for row in mine)
            how = f"falls {', '.join(falls)}" if falls else "rises, up to what seeds make"
            sentences.append(f"{setting}: {title} of {line} {how} ({means}).")
        return sentences

    return find
