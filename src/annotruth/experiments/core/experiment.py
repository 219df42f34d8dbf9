"""What an experiment is made of: data, methods, scores and findings, declared and not programmed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.training import Segmenter

Table = dict[str, Any]
"""A finished table as it is stored in JSON; see :func:`annotruth.experiments.run_experiment`."""


@dataclass(frozen=True)
class Task:
    """What to learn from, and what to score on.

    Attributes
    ----------
    train : the raters' labels; the truth attached to them is seen by the methods ``clean`` and ``oracle-cm`` only
    held_out : other items, with images and truth
    confusion : (items, raters, classes, classes) the raters' true confusion there, or None where it is unknown
    about : which data these are, in words
    known : true masks of some items to learn from beside the raters' labels, or None
    """

    train: Annotations
    held_out: Annotations
    confusion: np.ndarray | None = None
    about: str = ""
    known: Any = None


@dataclass(frozen=True)
class Trained:
    """A trained model, what it is to be scored on, and what its training took (memory is None where not known)."""

    model: Any
    task: Task
    seed: int
    seconds: float
    megabytes: float | None


@dataclass(frozen=True)
class Metric:
    """A column of the table; the seconds of each training get one in any case.

    Attributes
    ----------
    name : its name in JSON;  title : at the head of its column
    score : the number for a trained model, None where there is none
    better : which numbers are better
    form : how a number is written
    counted : the runs in which it is 1 are counted, where others are averaged
    series : metrics with the same word here are drawn in one plot, a line for each row of the table
    """

    name: str
    title: str
    score: Callable[[Trained], float | None]
    better: Literal["higher", "lower", "neither"] = "higher"
    form: str = ".4f"
    counted: bool = False
    series: str = ""


@dataclass(frozen=True)
class Row:
    """A line of the table: a method with options, under a name of its own.

    ``lines`` are the curves it is a point of, where the experiment draws curves; by default one of its own. ``data``
    are arguments of the task that hold for this row alone, where methods learn from different labels of the same items.
    """

    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    lines: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return self.name or self.method


@dataclass(frozen=True)
class Scale:
    """How much data, as arguments of the task, and how long a training, as arguments of the learner."""

    sizes: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Curves:
    """Draw metrics over something as lines, where other experiments have bars.

    Attributes
    ----------
    x : an option of the rows (a row without it becomes a horizontal line), or the name of a metric
    title : of the axis
    metrics : what is drawn
    shaded : a metric; where it is 0 or less, the plot is shaded
    """

    x: str
    title: str
    metrics: tuple[str, ...] = ("dice", "cm_rmse")
    shaded: str = ""


@dataclass(frozen=True)
class Experiment:
    """A table to be made: every row in every setting, once per seed. Nothing in it is chosen by held-out data.

    Attributes
    ----------
    task : makes the data from ``seed``, ``folder`` (which the user names, or None), sizes and the setting's arguments
    settings : arguments of the task by name; what precedes a comma names the plot a setting is drawn in
    learner : a class with ``fit``, made from a method, a seed, the scale's training and the row's options
    quick : the scale of a first look
    paper : the paper's figures by row, such as ``{"pixel-cm": {"dice": 0.8292}}``, in each setting that has some
    findings : what the table says, in sentences
    notes : what a reader must know, one sentence each
    stand_in : what is used where the user names no folder, if that is not what the experiment is about
    """

    name: str
    title: str
    task: Callable[..., Task]
    settings: Mapping[str, Mapping[str, Any]]
    rows: tuple[Row, ...]
    metrics: tuple[Metric, ...]
    full: Scale
    quick: Scale
    seeds: tuple[int, ...] = (0, 1, 2)
    learner: Callable[..., Any] = Segmenter
    paper: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    findings: tuple[Callable[[Table], list[str]], ...] = ()
    notes: tuple[str, ...] = ()
    curves: Curves | None = None
    stand_in: str = ""
