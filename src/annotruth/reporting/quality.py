"""What the report says beyond one model: what to label next, what that is expected to bring, and raters over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib
import numpy as np
from jinja2 import Environment
from markupsafe import Markup
from matplotlib.figure import Figure

from annotruth.choosing.queue.result import Queue
from annotruth.data.annotations import Annotations
from annotruth.fusion.over_time import LEVEL, MIN_ANSWERS, RaterHistory, skill_over_time
from annotruth.io.timing import AnswerTimes
from annotruth.reporting.figures import EMPHASIS, FAINT, PLAIN, STYLE, svg
from annotruth.reporting.model import RaterModel
from annotruth.reporting.panels import Panel
from annotruth.reporting.words import short

MOST_ORDERS = 40
"""Rows of a queue that are shown."""
MOST_HISTORIES = 12
"""Raters whose skill over time is drawn: those of whom something is said first."""
WINDOW = 20
"""Answers that a running mean is over."""


def queue_panel(queue: Queue, environment: Environment) -> Panel:
    """The next labels to ask for, and expected accuracy against their cost."""
    rows = queue.table.head(MOST_ORDERS).to_dict("records")
    # Safe below, since the environment has escaped every value on its way in.
    html = environment.get_template("queue.html.j2").render(
        summary=queue.summary, rows=rows, count=len(queue.table), curve=cost_curve(queue)
    )
    return Panel("queue", "What to label next", Markup(html), "Queue")


def time_panel(histories: Sequence[RaterHistory], environment: Environment) -> Panel | None:
    """Raters over time; None where nobody has answers enough."""
    told = [one for one in histories if len(one.time) >= MIN_ANSWERS]
    if not told:
        return None
    told.sort(key=lambda one: (not one.words, -len(one.time)))
    html = environment.get_template("over_time.html.j2").render(
        histories=told, level=LEVEL, chart=skill_curves(told[:MOST_HISTORIES]),
        shown=min(len(told), MOST_HISTORIES), least=MIN_ANSWERS, window=WINDOW,
    )  # fmt: skip
    return Panel("over-time", "Raters over time", Markup(html), "Over time")


def rater_histories(
    annotators: Mapping[str, RaterModel], ann: Annotations, shares: np.ndarray, times: AnswerTimes
) -> list[RaterHistory]:
    """Every rater over time, by a model's matrices; who is unknown to it is taken for an average rater.

    Parameters
    ----------
    shares : (classes,) how common each class is
    """
    known = {name: np.asarray(one.confusion, dtype=float) for name, one in annotators.items()}
    usual = np.mean(list(known.values()), axis=0) if known else np.eye(len(ann.classes))
    return skill_over_time(ann, shares, np.stack([known.get(name, usual) for name in ann.raters]), times)


def cost_curve(queue: Queue) -> str:
    """Draw expected accuracy against cost, with its band and where labels cease to pay."""
    curve = queue.curve
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(6.4, 2.9), layout="constrained")
        axes = figure.subplots()
        axes.set_title("Expected accuracy")
        axes.fill_between(curve["cost"], curve["low"], curve["high"], color=PLAIN, alpha=0.4, linewidth=0)
        axes.plot(curve["cost"], curve["accuracy"], color=EMPHASIS, linewidth=1.8)
        if 0 < queue.pays_until < len(queue):
            axes.axvline(
                float(np.interp(queue.pays_until, curve["labels"], curve["cost"])), color=FAINT, linestyle="--"
            )
        axes.set_xlabel("cost of the labels bought")
        return svg(figure)


def skill_curves(histories: Sequence[RaterHistory]) -> str:
    """Draw running means of how probably answers are right, one panel a rater, with changes as lines."""
    columns = min(len(histories), 3)
    lines = -(-len(histories) // columns)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8.6, 0.4 + 1.6 * lines), layout="constrained")
        panels = figure.subplots(lines, columns, squeeze=False, sharey=True).ravel()
        for panel, one in zip(panels, histories):
            hours = (one.time - one.time[0]) / 3600
            width = min(WINDOW, len(one.right))
            mean = np.convolve(one.right, np.ones(width) / width, "valid")
            panel.plot(hours[width - 1 :], mean, color=EMPHASIS, linewidth=1.5)
            for change in one.changes:
                panel.axvline((change.time - one.time[0]) / 3600, color=FAINT, linestyle="--", linewidth=1)
            panel.set_title(short(one.rater, 24))
            panel.set_ylim(0, 1.03)
        for panel in panels[len(histories) :]:
            panel.set_axis_off()
        for panel in panels[max(0, len(histories) - columns) : len(histories)]:
            panel.set_xlabel("hours since the first answer")
        return svg(figure)
