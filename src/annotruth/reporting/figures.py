"""Charts as SVG data URIs, drawn with Matplotlib's object interface so that a caller's own figures stay untouched."""

from __future__ import annotations

import io
import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter
from numpy.typing import ArrayLike

from annotruth.metrics import Reliability
from annotruth.reporting.words import heading, score, short

INK, FAINT, GRID = "#20262e", "#59636f", "#d9dde3"
EMPHASIS, PLAIN, SECOND = "#0b5fa5", "#a9b3bf", "#c2510a"
MIN_IN_BIN = 10
"""Predictions below which the share of right ones is not drawn."""
STYLE: dict[Any, Any] = {
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "font.size": 9, "text.color": INK,
    "axes.edgecolor": GRID, "axes.labelcolor": FAINT, "axes.titlesize": 9.5, "axes.titleweight": "bold",
    "axes.titlelocation": "left", "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "axes.axisbelow": True, "grid.color": GRID, "grid.linewidth": 0.6, "xtick.color": FAINT, "ytick.color": FAINT,
    "xtick.major.size": 0, "ytick.major.size": 0, "legend.frameon": False, "svg.hashsalt": "annotruth",
}  # fmt: skip

Nested = Mapping[str, Mapping[str, Mapping[str, float]]]


def training_curves(history: pd.DataFrame) -> str:
    """Draw the loss by epoch, with the trace of the confusion matrices beside it where it was recorded.

    Parameters
    ----------
    history : columns epoch, train_loss, val_loss (may be NaN) and, for some methods, trace
    """
    extra = "trace" in history and history["trace"].notna().any()
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8.6 if extra else 6.4, 2.9), layout="constrained")
        axes = figure.subplots(1, 2 if extra else 1, squeeze=False)[0]
        axes[0].set_title("Loss")
        for column, label, colour in (("train_loss", "training", EMPHASIS), ("val_loss", "validation", SECOND)):
            if column in history and history[column].notna().any():
                known = history[history[column].notna()]
                _line(axes[0], known["epoch"], known[column], colour, label)
        axes[0].legend()
        if extra:
            axes[1].set_title("Mean trace of the confusion matrices")
            _line(axes[1], history["epoch"], history["trace"], EMPHASIS, "trace")
        for panel in axes:
            panel.set_xlabel("epoch")
            panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        return svg(figure)


def score_bars(scores: Nested, method: str) -> str:
    """Draw one panel per setting and metric, one bar per method, with the current method emphasised.

    Scores of one method alone share one panel, a bar per metric.

    Parameters
    ----------
    scores : value by setting, method and metric
    method : the name to emphasise
    """
    rows = [row for by_method in scores.values() for row in by_method.values()]
    metrics = list(dict.fromkeys(metric for row in rows for metric in row))
    alone = len(rows) == 1
    heights = [len(metrics)] if alone else [max(len(by_method), 1) for by_method in scores.values()]
    width = 4.6 if alone else 1.3 + 2.1 * len(metrics)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, 0.6 * len(heights) + 0.27 * sum(heights)), layout="constrained")
        if alone:
            texts = [score(rows[0][metric], metric) for metric in metrics]
            _bars(figure.subplots(), {heading(metric): rows[0][metric] for metric in metrics}, texts, emphasised=None)
            return svg(figure)
        panels = figure.subplots(len(scores), len(metrics), squeeze=False, sharex="col", height_ratios=heights)
        for line, (setting, by_method) in zip(panels, scores.items(), strict=True):
            for metric, panel in zip(metrics, line, strict=True):
                values = {name: row.get(metric, math.nan) for name, row in by_method.items()}
                texts = [score(value, metric) for value in values.values()]
                _bars(panel, values, texts, emphasised=method, names=metric == metrics[0])
                panel.set_title(f"{short(setting)} · {heading(metric)}")
        return svg(figure)


def reliability(curves: Mapping[str, Reliability], confidence: str) -> str:
    """Draw which share is right over how sure the model is, and beside it how many predictions are that sure.

    Bins with few predictions are left out of the curve: a share of three says nothing.

    Parameters
    ----------
    curves : by what they are called in the legend; two at most
    confidence : what the horizontal axes show
    """
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8.6, 3.1), layout="constrained")
        right, count = figure.subplots(1, 2)
        right.set_title("Share that is right")
        right.plot([0, 1], [0, 1], color=FAINT, linewidth=1, linestyle=(0, (4, 3)), label="as sure as right")
        count.set_title("Share of all predictions")
        for (name, curve), colour in zip(curves.items(), (EMPHASIS, SECOND)):
            told = curve.count >= MIN_IN_BIN
            _line(right, curve.confidence[told], curve.accuracy[told], colour, name)
            edges = np.linspace(0, 1, len(curve.count) + 1)
            count.stairs(curve.count / curve.count.sum(), edges, color=colour, fill=len(curves) == 1, linewidth=1.8)
        right.legend(loc="upper left")
        right.set_ylim(-0.02, 1.02)
        for panel in (right, count):
            panel.set(xlim=(0, 1), xlabel=confidence)
            panel.tick_params(axis="x", pad=6)  # away from the zero of the other axis
            panel.yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
        return svg(figure)


def _line(panel: Axes, x: ArrayLike, y: ArrayLike, colour: str, label: str) -> None:
    panel.plot(x, y, color=colour, label=label, linewidth=1.8, marker="o" if np.size(x) < 30 else "", ms=3)


def _bars(
    panel: Axes, values: Mapping[str, float], texts: Sequence[str], emphasised: str | None, names: bool = True
) -> None:
    """Draw one bar per value, with its number beside it; without a name to emphasise all stand out alike."""
    known = [0 if math.isnan(value) else value for value in values.values()]
    positions = range(len(values))
    panel.barh(
        positions, known, height=0.68, color=[EMPHASIS if emphasised in (name, None) else PLAIN for name in values]
    )
    for position, text, length in zip(positions, texts, known, strict=True):
        panel.annotate(
            text, (length, position), (3, 0), textcoords="offset points", va="center", fontsize=8, clip_on=False
        )
    panel.set_yticks(positions, [short(name, 18) for name in values] if names else [""] * len(values))
    for label, name in zip(panel.get_yticklabels(), values, strict=True):
        label.set(color=INK, fontweight="bold" if name == emphasised else "normal")
    panel.invert_yaxis()
    panel.grid(visible=False, axis="y")
    panel.margins(x=0.16)


def svg(figure: Figure) -> str:
    """A figure as a data URI."""
    file = io.StringIO()
    FigureCanvasSVG(figure)
    figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    return "data:image/svg+xml;base64," + b64encode(file.getvalue().encode()).decode("ascii")
