"""What an experiment is made of: data, methods, scores and findings, declared and not programmed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from annotruth.experiments.core.columns import Column, column
from annotruth.experiments.core.task import Scale, TaskData
from annotruth.training import Segmenter

Table = dict[str, Any]
"""A finished table as it is stored in JSON; see :func:`annotruth.experiments.run_experiment`."""


@dataclass(frozen=True)
class Row:
    """A line of the table: a method with options, under a name of its own.

    ``lines`` are the curves it is a point of, where the experiment draws curves; by default one of its own. ``data``
    are arguments of the task that hold for this row alone, where methods learn from different labels of the same items;
    ``training`` are such arguments of the learner, as the network, and take the place of the scale's.
    """

    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    lines: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return self.name or self.method


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
    metrics : columns, or the names of metrics whose records make them
    learner : a class with ``fit``, made from a method, a seed, the scale's training, the row's, and the row's options
    quick : the scale of a first look
    paper : the paper's figures by row, such as ``{"pixel-cm": {"dice": 0.8292}}``, in each setting that has some
    findings : what the table says, in sentences
    notes : what a reader must know, one sentence each
    stand_in : what is used where the user names no folder, if that is not what the experiment is about
    ranked : metrics by which rows are ranked in every setting; ranks are averaged over settings, and rows stand in the
        order of the first metric's average rank
    bounds : rows that know more than the raters' labels, and are not ranked
    skips : whether a row is left out of a setting whose data its method refuses, with the reason; else the run stops
    """

    name: str
    title: str
    task: Callable[..., TaskData]
    settings: Mapping[str, Mapping[str, Any]]
    rows: tuple[Row, ...]
    metrics: tuple[Column | str, ...]
    full: Scale
    quick: Scale
    seeds: tuple[int, ...] = (0, 1, 2)
    learner: Callable[..., Any] = Segmenter
    paper: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    findings: tuple[Callable[[Table], list[str]], ...] = ()
    notes: tuple[str, ...] = ()
    curves: Curves | None = None
    stand_in: str = ""
    ranked: tuple[str, ...] = ()
    bounds: tuple[str, ...] = ()
    skips: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        """What is measured of every training, in order."""
        return tuple(column(each) if isinstance(each, str) else each for each in self.metrics)
