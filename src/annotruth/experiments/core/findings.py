"""What a table says, in sentences computed from it: whether a claim holds, and by how much it does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from annotruth.experiments.core.experiment import Table

Finding = Callable[[Table], list[str]]


def above_others(method: str, besides: Sequence[str] = ("clean", "oracle-cm"), metric: str = "dice") -> Finding:
    """Is a method better than all comparisons, apart from those that know more than the raters' labels?"""

    def find(table: Table) -> list[str]:
        sentences = []
        for setting, rows in by_setting(table).items():
            comparisons = [row for name, row in rows.items() if name not in (method, *besides)]
            ahead = sorted((row for row in comparisons if _gain(row, rows[method], metric) > 0), key=_mean(metric))
            names = [f"{row['method']} (by {_lead(row, rows[method], metric)})" for row in reversed(ahead)]
            known = _listed([name for name in besides if name in rows])
            others = ", above the other comparisons" if len(ahead) < len(comparisons) else ""
            sentences.append(
                f"{setting}: {method} is below {_listed(names)} in {_word(metric)}{others}."
                if names
                else f"{setting}: {method} is above every comparison in {_word(metric)}"
                f"{f', {known} left aside' if known else ''}{_barely(rows[method], comparisons, metric)}."
            )
        return sentences

    return find


def close_to(method: str, bound: str, most: Mapping[str, float], metric: str = "dice") -> Finding:
    """Is a method, in each setting, at most so far below another?"""

    def find(table: Table) -> list[str]:
        sentences = []
        for setting, rows in by_setting(table).items():
            if setting in most and bound in rows:
                gap = _gain(rows[bound], rows[method], metric)
                where = away(-gap)
                target = f"target: at most {points(most[setting])} below, {reached(gap <= most[setting])}"
                sentences.append(f"{setting}: {method} is {where} {bound} in {_word(metric)} ({target}).")
        return sentences

    return find


def above_on_every_seed(method: str, other: str, metric: str = "dice") -> Finding:
    """Is a method above another whatever the seed?"""

    def find(table: Table) -> list[str]:
        sentences = []
        for setting, rows in by_setting(table).items():
            pairs = list(zip(rows[method][metric]["each"], rows[other][metric]["each"]))
            above = sum(own > others for own, others in pairs)
            sentences.append(
                f"{setting}: {method} is above {other} in {_word(metric)} on {above} of {len(pairs)} seeds (target: "
                f"all, {reached(above == len(pairs))})."
            )
        return sentences

    return find


def at_most(method: str, metric: str, most: Mapping[str, float]) -> Finding:
    """Is an error of a method, in each setting, within a bound?"""

    def find(table: Table) -> list[str]:
        title = title_of(table, metric)
        return [
            f"{setting}: {title} of {method} is {rows[method][metric]['mean']:.4f} "
            f"(target: at most {most[setting]}, {reached(rows[method][metric]['mean'] <= most[setting])})."
            for setting, rows in by_setting(table).items()
            if setting in most
        ]

    return find


def at_least(method: str, metric: str, least: Mapping[str, float], every_seed: bool = False) -> Finding:
    """Does a method, in each setting, reach a score? On average, or on every seed."""

    def find(table: Table) -> list[str]:
        title, more, every = title_of(table, metric), *((" or more", " on every seed") if every_seed else ("", ""))
        sentences = []
        for setting, rows in by_setting(table).items():
            if setting in least:
                score = min(rows[method][metric]["each"]) if every_seed else rows[method][metric]["mean"]
                sentences.append(
                    f"{setting}: {title} of {method} is {score:.4f}{more} "
                    f"(target: at least {least[setting]}{every}, {reached(score >= least[setting])})."
                )
        return sentences

    return find


def lower_than(method: str, other: str, metric: str) -> Finding:
    """Is an error of a method below another method's?"""

    def find(table: Table) -> list[str]:
        title = title_of(table, metric)
        sentences = []
        for setting, rows in by_setting(table).items():
            if all(name in rows and metric in rows[name] for name in (method, other)):
                ours, theirs = rows[method][metric]["mean"], rows[other][metric]["mean"]
                word = "below" if ours < theirs else "not below"
                sentences.append(
                    f"{setting}: {title} of {method}, {ours:.4f}, is {word} that of {other}, {theirs:.4f}."
                )
        return sentences

    return find


def leads(method: str, other: str, least: float, metric: str) -> Finding:
    """Is a row at least so far above another?"""

    def find(table: Table) -> list[str]:
        title = title_of(table, metric)
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
        title = title_of(table, metric)
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


def near_best(default: str, most: float, metric: str = "dice") -> Finding:
    """Is the untouched default close to the best of all rows?"""

    def find(table: Table) -> list[str]:
        sentences = []
        for setting, rows in by_setting(table).items():
            best = max((row for name, row in rows.items() if name != default), key=_mean(metric))
            gap = _gain(best, rows[default], metric)
            where = away(-gap)
            target = f"target: at most {points(most)} below, {reached(gap <= most)}"
            sentences.append(f"{setting}: {default} is {where} the best of the sweep, {best['method']} ({target}).")
        return sentences

    return find


def never_swapped(method: str) -> Finding:
    """Did any seed end with classes swapped?"""

    def find(table: Table) -> list[str]:
        return [
            f"{setting}: {method} ended with classes swapped or lost on {rows[method]['swapped']} of "
            f"{len(rows[method]['seeds'])} seeds."
            for setting, rows in by_setting(table).items()
        ]

    return find


def title_of(table: Table, metric: str) -> str:
    """The title of a column."""
    return next(each["title"] for each in table["metrics"] if each["name"] == metric)


def by_setting(table: Table) -> dict[str, dict[str, Any]]:
    """The rows of a table by setting and method."""
    settings: dict[str, dict[str, Any]] = {}
    for row in table["rows"]:
        settings.setdefault(row["setting"], {})[row["method"]] = row
    return settings


def _word(metric: str) -> str:
    return {"dice": "Dice", "soft_dice": "soft Dice"}.get(metric, metric)


def _mean(metric: str) -> Callable[[dict[str, Any]], float]:
    return lambda row: row[metric]["mean"]


def _gain(row: dict[str, Any], other: dict[str, Any], metric: str) -> float:
    return row[metric]["mean"] - other[metric]["mean"]


def _lead(row: dict[str, Any], other: dict[str, Any], metric: str) -> str:
    """How far a row is ahead, and whether that is more than seeds make it."""
    gain = _gain(row, other, metric)
    within = gain < max(row[metric]["sd"], other[metric]["sd"])
    return points(gain) + (", less than the seeds' standard deviation" if within else "")


def _barely(row: dict[str, Any], others: list[dict[str, Any]], metric: str) -> str:
    """The comparisons from which seeds alone could part a row that is ahead of them."""
    leads = [(other["method"], _lead(row, other, metric)) for other in sorted(others, key=_mean(metric), reverse=True)]
    close = [f"{name} by {lead.split(',')[0]}" for name, lead in leads if "," in lead]
    return f"; but {_listed(close)}, less than the seeds' standard deviation" if close else ""


def points(share: float) -> str:
    """A difference of shares as it is told."""
    return f"{100 * share:.2f} points"


def away(difference: float) -> str:
    """Where something is beside something else.

    Examples
    --------
    >>> away(0.012), away(-0.003)
    ('1.20 points above', '0.30 points below')
    """
    return f"{points(abs(difference))} {'below' if difference < 0 else 'above'}"


def reached(yes: bool) -> str:
    """Whether a target was met, in a word."""
    return "reached" if yes else "missed"


def _listed(names: Sequence[str]) -> str:
    """Names as in a sentence: a, b and c."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
