"""What the page says apart from single cases: the raters, the scores, the data in short, settings and versions."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from numbers import Real
from typing import Any

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion.raters import most_frequent_error, ranking
from annotruth.reporting import tiles
from annotruth.reporting.case_statistics import CaseStatistics
from annotruth.reporting.figures import Nested
from annotruth.reporting.model import Model
from annotruth.reporting.words import Habit, number, percent, short

MOST_NUMBERED_CLASSES = 11
"""Larger matrices are shown without numbers, as a picture."""
LIBRARIES = ("annotruth", "numpy", "scipy", "torch", "lightning", "monai", "matplotlib")


@dataclass(frozen=True)
class RaterRow:
    """One rater as the table and the heat maps show them; what the model does not know is None.

    Attributes
    ----------
    rank : by skill, with the ranks it may have, given the intervals: "2 (1–3)"
    agreement : with the estimated truth, None = nothing labelled
    error : the most frequent one, in words
    confusion : (classes, classes) [true, observed]
    bounds : (2, classes, classes) low and high of each entry
    picture : data URI of the matrix where it is too large for numbers
    """

    name: str
    rank: str | None
    skill: float | None
    interval: tuple[float, float] | None
    agreement: float | None
    labelled: int
    habit: Habit | None
    error: str
    confusion: np.ndarray | None
    bounds: np.ndarray | None
    picture: str | None


def rater_rows(
    model: Model,
    ann: Annotations,
    agreement: np.ndarray,
    labelled: np.ndarray,
    habit_of: Callable[[np.ndarray], Habit],
) -> list[RaterRow]:
    """Every rater of the model and of the annotations, the most skilled first.

    Parameters
    ----------
    agreement : (raters of ``ann``,) with the estimated truth, NaN = nothing labelled
    labelled : (raters of ``ann``,) how many items each labelled
    habit_of : says in words how a matrix (classes, classes) errs
    """
    rows, ranks, place = [], _ranks(model), {name: at for at, name in enumerate(ann.raters)}
    for name in dict.fromkeys([*model.raters_, *ann.raters]):
        at = place.get(name)
        learnt = model.annotators_.get(name)
        confusion = None if learnt is None else np.asarray(learnt.confusion, dtype=float)
        large = confusion is not None and len(confusion) > MOST_NUMBERED_CLASSES
        rows.append(
            RaterRow(
                name=name,
                rank=ranks.get(name),
                skill=None if learnt is None else float(learnt.skill),
                interval=None if learnt is None else learnt.interval,
                agreement=None if at is None or np.isnan(agreement[at]) else float(agreement[at]),
                labelled=0 if at is None else int(labelled[at]),
                habit=None if confusion is None else habit_of(confusion),
                error="" if confusion is None else most_frequent_error(confusion, ann.classes),
                confusion=confusion,
                bounds=None if learnt is None else learnt.confusion_interval,
                picture=tiles.matrix(confusion) if confusion is not None and large else None,
            )
        )
    return sorted(rows, key=lambda row: -np.inf if row.skill is None else row.skill, reverse=True)


def _ranks(model: Model) -> dict[str, str]:
    """Each rater's rank in words; of an interval that is not known, anything may be true."""
    names, known = list(model.annotators_), list(model.annotators_.values())
    if not known:
        return {}
    low, high = np.array([one.interval or (0.0, 1.0) for one in known]).T
    skill, labelled = np.array([one.skill for one in known]), np.array([one.labelled for one in known])
    classes = [str(name) for name in model.classes_]
    table = ranking(names, [one.confusion for one in known], classes, skill, low, high, labelled)
    between = [f" ({b}–{w})" if b < w else "" for b, w in zip(table["best_rank"], table["worst_rank"])]
    return {name: f"{rank}{more}" for name, rank, more in zip(table["rater"], table["rank"], between)}


def in_short(rows: list[RaterRow], statistics: CaseStatistics) -> list[str]:
    """The findings in a few plain sentences."""
    told = []
    if statistics.dice is not None:
        told.append(f"The estimate reaches a mean Dice of {number(statistics.dice, 3)} against the known truth.")
    ranked = sorted((row for row in rows if row.agreement is not None), key=lambda row: -(row.agreement or 0))
    if len(ranked) > 1:
        best, worst = ranked[0], ranked[-1]
        how = f", who {worst.habit.kind}" if worst.habit else ""
        told.append(
            f"Closest to the estimated truth is {short(best.name)} (Dice {number(best.agreement)}), "
            f"furthest {short(worst.name)} (Dice {number(worst.agreement)}){how}."
        )
    if len(statistics.cases) > 1:
        disputed = statistics.most_disputed(1)[0]
        told.append(
            f"The most disputed case is {short(disputed.name, 48)} (disagreement {percent(disputed.disagreement)})."
        )
    return told


def nested_scores(scores: Mapping[str, Any] | None, method: str) -> Nested:
    """Bring scores to one form: value by setting, method and metric; a flat dict belongs to the current method.

    Examples
    --------
    >>> nested_scores({"dice": 0.9}, "pixel-cm")
    {'': {'pixel-cm': {'dice': 0.9}}}
    """
    if not scores:
        return {}
    if all(isinstance(value, Real) for value in scores.values()):
        return {"": {method: dict(scores)}}
    try:
        rows = [row for by_method in scores.values() for row in by_method.values()]
        if all(isinstance(value, Real) for row in rows for value in row.values()):
            return scores
    except AttributeError:
        pass
    raise InputError(
        "scores must be {metric: number} or {setting: {method: {metric: number}}}; "
        f"found {json.dumps(scores, default=str)[:120]} …"
    )


def settings(model: Model) -> dict[str, str]:
    """The model's settings as text; nested ones as JSON."""
    return {
        str(name): value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
        for name, value in model.settings_.items()
    }


def versions() -> dict[str, str]:
    """Versions of what took part, read without importing it."""
    found = {"python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    return found
