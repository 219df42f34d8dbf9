"""Plain words for numbers: what kind of error a rater makes, shares as percentages, names cut to size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from annotruth.metrics import find_metric

NOTICEABLE = 0.15
"""Errors below this share of the foreground's area are not worth a word."""
# Of metrics that have no record, words of the name tell which way is better.
LOWER_IS_BETTER = ("rmse", "error", "loss", "ged", "distance", "hausdorff", "brier", "ece", "nll")
HIGHER_IS_BETTER = ("dice", "iou", "jaccard", "accuracy", "auc", "precision", "recall", "sensitivity", "specificity")


class Habit(NamedTuple):
    """How a rater errs: the kind in a few words, and the shares behind it."""

    kind: str
    detail: str

    def __str__(self) -> str:
        return f"{self.kind} ({self.detail})"


def percent(share: float) -> str:
    """Give a share between 0 and 1 as a whole percentage that never rounds to a false "all" or "nothing".

    Examples
    --------
    >>> print(percent(0.214), percent(0.9999), percent(0.001), percent(0), percent(float("nan")))
    21 % >99 % <1 % 0 % –
    """
    if math.isnan(share):
        return "–"
    rounded = round(100 * share)
    if rounded == 100 and share < 1:
        text = ">99"
    elif rounded == 0 and share > 0:
        text = "<1"
    else:
        text = str(rounded)
    return f"{text} %"


def unbroken(text: str) -> str:
    """Tie percentages together with a narrow space, at which no line breaks.

    Examples
    --------
    >>> unbroken("21 %") == "21\\u202f%"
    True
    """
    return text.replace(" %", "\u202f%")


def number(value: float | None, digits: int = 2) -> str:
    """Give a number with fixed digits, or a dash where there is none.

    Examples
    --------
    >>> print(number(0.987), number(None))
    0.99 –
    """
    return "–" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def short(name: str, most: int = 22) -> str:
    """Cut a long name in the middle, where names differ least.

    Examples
    --------
    >>> short("study_0042_left_kidney_follow_up", 15)
    'study_0…llow_up'
    """
    if len(name) <= most:
        return name
    tail = (most - 1) // 2
    return f"{name[: most - 1 - tail]}…{name[-tail:]}"


def heading(metric: str) -> str:
    """Title of a metric with an arrow that shows which way is better, as far as its record or its name tells.

    Examples
    --------
    >>> heading("dice"), heading("cm_rmse"), heading("val_loss"), heading("seconds")
    ('foreground Dice ↑', 'CM RMSE ↓', 'val_loss ↓', 'seconds')
    """
    record = find_metric(metric)
    return f"{metric} {_arrow(metric)}".rstrip() if record is None else f"{record.heading} {record.arrow}".rstrip()


def score(value: float | None, metric: str) -> str:
    """Write a score as its metric's record asks for, and with three digits where there is no record.

    Examples
    --------
    >>> score(0.98765, "dice"), score(0.98765, "mystery"), score(None, "dice")
    ('0.9877', '0.988', '–')
    """
    record = find_metric(metric)
    return number(value, 3) if record is None else record.write(value)


def _arrow(metric: str) -> str:
    words = metric.lower().replace("-", "_").split("_")
    if any(word in LOWER_IS_BETTER for word in words):
        return "↓"
    return "↑" if any(word in HIGHER_IS_BETTER for word in words) else ""


def describe(confusion: np.ndarray, classes: Sequence[str], shares: np.ndarray) -> Habit:
    """Say in plain words how a rater errs.

    Parameters
    ----------
    confusion : (classes, classes) [true, observed], rows sum to 1; class 0 is the background
    classes : their names
    shares : (classes,) how much of the pictures belongs to each class

    Examples
    --------
    >>> import numpy as np
    >>> eager = np.array([[0.79, 0.21], [0.02, 0.98]])
    >>> print(describe(eager, ["background", "lesion"], np.array([0.8, 0.2])))
    draws too much (finds 98 % of lesion, but 21 % of background is called lesion)
    """
    confusion = np.asarray(confusion, dtype=float)
    foreground = np.asarray(shares, dtype=float)[1:]
    # A class that the estimate never shows still counts a little, so that no share divides by zero.
    weights = (foreground + 1e-6) / (foreground + 1e-6).sum()
    called = 1 - float(confusion[0, 0])
    found = 1 - float(weights @ confusion[1:, 0])
    # What is added, measured against the true area: 1 % of a large background can double a small lesion.
    added = called * float(shares[0]) / max(float(foreground.sum()), 1e-6)
    background, thing = _class(classes[0]), _class(classes[1]) if len(classes) == 2 else "the foreground"
    as_thing = thing if len(classes) == 2 else "something"

    finds = f"finds {percent(found)} of {thing}"
    finds_only = f"finds only {percent(found)} of {thing}"
    calls = f"{percent(called)} of {background} is called {as_thing}"
    # A small share of the background says little; the area it adds says more.
    adds = calls if called >= 0.05 else f"adds {percent(added)} to its area"
    misses_much, adds_much = 1 - found >= NOTICEABLE, added >= NOTICEABLE

    if max(found, called) < 0.05:
        return Habit("marks almost nothing", finds)
    if min(found, called) > 0.95:
        return Habit("marks almost everything", calls)
    if found < called - 0.1:
        return Habit(f"swaps {background} and {thing}", f"{finds_only}, but {calls}")
    if found < called + 0.1:
        return Habit("answers as if by chance", f"{finds}, and {calls}")
    habits = []
    if misses_much and adds_much and added < 3 * (1 - found) < 9 * added:
        habits.append(Habit("misses and adds", f"{finds_only}, and {adds}"))
    elif adds_much and added > 1 - found:
        habits.append(Habit("draws too much", f"{finds}, but {adds}"))
    elif misses_much:
        habits.append(Habit("draws too little", finds_only))
    habits += _mix_ups(confusion, classes)
    if not habits:
        return Habit("draws faithfully", f"{finds}; {calls}")
    return Habit(" and ".join(habit.kind for habit in habits), "; ".join(habit.detail for habit in habits))


def describe_answers(confusion: np.ndarray, classes: Sequence[str], shares: np.ndarray) -> Habit:
    """Say in plain words how a rater of whole items errs.

    Parameters
    ----------
    confusion : (classes, classes) [true, observed], rows sum to 1
    classes : their names
    shares : (classes,) how common each class is

    Examples
    --------
    >>> import numpy as np
    >>> one_sided = np.array([[0.97, 0.02, 0.01], [0.30, 0.69, 0.01], [0, 0, 1]])
    >>> print(describe_answers(one_sided, ["cat", "dog", "fox"], np.ones(3) / 3))
    mixes up classes (takes 30 % of dog for cat)
    >>> print(describe_answers(np.full((3, 3), 1 / 3), ["cat", "dog", "fox"], np.ones(3) / 3))
    answers as if by chance (right on 33 %)
    """
    confusion, weights = np.asarray(confusion, dtype=float), np.asarray(shares, dtype=float)
    right = percent(float(weights @ np.diag(confusion) / max(weights.sum(), 1e-9)))
    answer = int(confusion.min(axis=0).argmax())
    if confusion[:, answer].min() > 0.9:
        return Habit(f"always answers {_class(classes[answer])}", f"right on {right}")
    others = (confusion.sum(axis=0) - np.diag(confusion)) / max(len(confusion) - 1, 1)
    if (np.diag(confusion) - others).mean() < 0.1:  # an answer is given as often where it is wrong
        return Habit("answers as if by chance", f"right on {right}")
    mixed = _mix_ups(confusion, classes, first=0)
    return mixed[0] if mixed else Habit("answers faithfully", f"right on {right}")


def _mix_ups(confusion: np.ndarray, classes: Sequence[str], first: int = 1) -> list[Habit]:
    """The classes taken for one another, from the ``first`` on, worst two only."""
    wrong = confusion.copy()
    np.fill_diagonal(wrong, 0)
    wrong[:first], wrong[:, :first] = 0, 0
    order = zip(*np.unravel_index(np.argsort(-wrong, axis=None, kind="stable")[:2], wrong.shape))
    worst = [(int(i), int(j)) for i, j in order if wrong[i, j] >= NOTICEABLE]
    if not worst:
        return []
    detail = " and ".join(f"{percent(wrong[i, j])} of {_class(classes[i])} for {_class(classes[j])}" for i, j in worst)
    i, j = worst[0]
    swapped = min(wrong[i, j], wrong[j, i]) > 0.5
    kind = f"swaps {_class(classes[i])} and {_class(classes[j])}" if swapped else "mixes up classes"
    return [Habit(kind, f"takes {detail}")]


def _class(name: str) -> str:
    return f"class {name}" if name.isdigit() else short(name)
