"""What tables say where the raters' true mean matrix is diagonally dominant, and where it is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from annotruth.experiments.core.experiment import Table
from annotruth.experiments.core.findings import Finding, away, by_setting, points, reached

CLEARLY = 0.1
"""A margin of dominance from which on the truth must be found."""
SURE = 0.95
"""Share of runs in which a warning must come, or not come."""


def close_where_dominant(method: str, bound: str, most: Mapping[str, float], metric: str = "accuracy") -> Finding:
    """Is a method close to another in the runs where dominance is clear? By what precedes the comma of a setting."""

    def find(table: Table) -> list[str]:
        sentences = []
        for panel, limit in most.items():
            gaps: list[float] = []
            worst = ("", -np.inf)
            for setting, rows in by_setting(table).items():
                if setting.split(",")[0] == panel:
                    clear = np.array(rows[method]["margin"]["each"]) >= CLEARLY
                    here = (np.array(rows[bound][metric]["each"]) - np.array(rows[method][metric]["each"]))[clear]
                    gaps += here.tolist()
                    if len(here) and here.mean() > worst[1]:
                        worst = (setting, here.mean())
            if gaps:
                sentences.append(
                    f"{panel}: where dominance is at least {CLEARLY} ({len(gaps)} runs), {method} is "
                    f"{away(-float(np.mean(gaps)))} {bound} in {metric}; it is worst at {worst[0]}, "
                    f"{away(-worst[1])} (target: at most {points(limit)} below, {reached(worst[1] <= limit)})."
                )
        return sentences

    return find


def at_most_where_dominant(method: str, metric: str, most: float) -> Finding:
    """Is an error within a bound in every setting, over the runs where dominance is clear?"""

    def find(table: Table) -> list[str]:
        errors = {}
        for setting, rows in by_setting(table).items():
            clear = np.array(rows[method]["margin"]["each"]) >= CLEARLY
            if clear.any():
                errors[setting] = float(np.array(rows[method][metric]["each"])[clear].mean())
        if not errors:
            return []
        worst = max(errors, key=lambda setting: errors[setting])
        title = next(each["title"] for each in table["metrics"] if each["name"] == metric)
        return [
            f"Where dominance is at least {CLEARLY}, {title} of {method} is largest at {worst}, {errors[worst]:.4f} "
            f"(target: at most {most}, {reached(errors[worst] <= most)})."
        ]

    return find


def better_below(method: str, besides: Sequence[str], most: float, metric: str = "accuracy") -> Finding:
    """Is a method above all comparisons where raters are this skilful at most, and their mean matrix is dominant?"""

    def find(table: Table) -> list[str]:
        sentences = []
        for setting, rows in by_setting(table).items():
            mine = rows[method]
            if mine["skill"]["mean"] > most + 0.05 or mine["margin"]["mean"] <= 0:
                continue
            others = {name: row[metric]["mean"] for name, row in rows.items() if name not in (method, *besides)}
            best = max(others, key=lambda name: others[name])
            lead = mine[metric]["mean"] - others[best]
            sentences.append(f"{setting}: {method} is {away(lead)} the best comparison, {best}.")
        return sentences

    return find


def warns_when_due(method: str) -> Finding:
    """Does the model warn where the truth is not identified, and is it silent where it clearly is?"""

    def find(table: Table) -> list[str]:
        rows = [rows[method] for rows in by_setting(table).values()]
        margin = np.concatenate([row["margin"]["each"] for row in rows])
        warned = np.concatenate([row["doubted"]["each"] for row in rows]) > 0
        sentences = []
        for runs, right, words in (
            (margin <= 0, warned, "no dominance: warned"),
            (margin >= CLEARLY, ~warned, f"dominance of at least {CLEARLY}: silent"),
        ):
            if runs.any():
                share = float(right[runs].mean())
                sentences.append(
                    f"{method}, {words} in {int(right[runs].sum())} of {int(runs.sum())} runs "
                    f"(target: {SURE:.0%}, {reached(share >= SURE)})."
                )
        between = (margin > 0) & (margin < CLEARLY)
        if between.any():
            sentences.append(
                f"{method}, dominance in between: warned in {warned[between].sum()} of {between.sum()} runs."
            )
        return sentences

    return find
