"""One record per metric: what it is called, which way is better, what it needs and how its numbers are written."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np

from annotruth.errors import InputError

Better = Literal["higher", "lower", "neither"]
Axis = Literal["item", "class", "rater"]
Need = Literal[
    "prediction", "truth", "probabilities", "foreground", "soft_truth", "samples", "masks", "answers", "confusion",
    "true_confusion", "n_classes", "spacing",
]  # fmt: skip
"""What a metric can be given; where one speaks of images, label tables have no spatial axes.

- ``prediction``, ``truth``: class numbers (items, *spatial)
- ``probabilities``: of every class (items, classes, *spatial)
- ``foreground``: its probability (items, *spatial);  ``soft_truth``: the share of it that is true, nan = unknown
- ``samples``: sampled masks (items, samples, *spatial);  ``masks``: the raters' (items, raters, *spatial)
- ``answers``: a label table, or (items, raters) class numbers
- ``confusion``, ``true_confusion``: (..., raters, classes, classes), [true, observed], estimated and true
- ``n_classes``: how many classes there are;  ``spacing``: millimetres per pixel along each axis, one tuple per item
"""

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Metric:
    """What tables, plots and the report know of a metric.

    Attributes
    ----------
    name : by which scores are given and stored
    function : the pure function;  needs : its arguments, in order
    title : at the head of a column
    better : which numbers are better
    range : the least and the greatest number it can give
    unit : of its numbers, if they have one
    axes : what the function gives numbers for; none = one number for all
    form : how a number is written, as in :func:`format`
    """

    name: str
    function: Callable[..., Any]
    title: str
    needs: tuple[Need, ...]
    better: Better = "higher"
    range: tuple[float, float] = (0.0, 1.0)
    unit: str = ""
    axes: tuple[Axis, ...] = ()
    form: str = ".4f"

    @property
    def per_class(self) -> bool:
        """Whether every class has a number of its own."""
        return "class" in self.axes

    @property
    def heading(self) -> str:
        """The title with the unit."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    @property
    def arrow(self) -> str:
        """Which way is better, as a sign; nothing, where neither is."""
        return {"higher": "↑", "lower": "↓", "neither": ""}[self.better]

    def write(self, value: float | None) -> str:
        """Write a number as this metric's are; a dash where there is none."""
        return "–" if value is None or math.isnan(value) else format(value, self.form)

    def score(self, *arguments: Any) -> float:
        """One number: what the function gives, or the mean of all known ones it gives."""
        values = np.asarray(self.function(*arguments), dtype=float)
        return float(values) if values.ndim == 0 else mean_of_known(values)


METRICS: dict[str, Metric] = {}
"""Every metric by its name."""


def metric(
    title: str,
    *needs: Need,
    better: Better = "higher",
    range: tuple[float, float] = (0.0, 1.0),
    unit: str = "",
    axes: tuple[Axis, ...] = (),
    form: str = ".4f",
    name: str = "",
) -> Callable[[Function], Function]:
    """Register a function as a metric; the function itself stays as it is.

    Parameters
    ----------
    title, needs, better, range, unit, axes, form : see :class:`Metric`
    name : by default the function's

    Examples
    --------
    >>> @metric("share of foreground", "prediction", better="neither", form=".1f", unit="%")
    ... def foreground_share(prediction):
    ...     return 100 * float((prediction > 0).mean())
    >>> found = METRICS["foreground_share"]
    >>> found.heading, found.write(found.score(np.array([[[0, 1, 1]]])))
    ('share of foreground (%)', '66.7')
    >>> del METRICS["foreground_share"]  # only an example
    """

    def register(function: Function) -> Function:
        record = Metric(
            name or function.__name__, function, title, needs, better, range, unit, axes, form
        )  # fmt: skip
        before = METRICS.get(record.name)
        if before is not None and before.function.__qualname__ != function.__qualname__:
            raise InputError(
                f"There is a metric {record.name} already, the function {before.function.__qualname__}; "
                "choose another name=."
            )
        METRICS[record.name] = record
        return function

    return register


def find_metric(name: str) -> Metric | None:
    """Find a metric by its name or its function's; None if there is no such.

    Examples
    --------
    >>> find_metric("cm_rmse") is find_metric("confusion_rmse"), find_metric("seconds")
    (True, None)
    """
    by_function = (record for record in METRICS.values() if record.function.__name__ == name)
    return METRICS.get(name) or next(by_function, None)


def mean_of_known(values: np.ndarray) -> float:
    """Mean without nan entries; nan only if there is nothing else.

    Examples
    --------
    >>> mean_of_known(np.array([1.0, np.nan, 2.0]))
    1.5
    """
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")
