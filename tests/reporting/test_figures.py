"""Curves and bars, read back from the drawings."""

from __future__ import annotations

import subprocess
import sys
from base64 import b64decode
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pandas as pd
import pytest

from annotruth.metrics import Reliability
from annotruth.reporting.figures import reliability, score_bars, training_curves


def parsed(uri: str) -> ElementTree.Element:
    head, data = uri.split(",", 1)
    assert head == "data:image/svg+xml;base64"
    return ElementTree.fromstring(b64decode(data))


def bars(uri: str, colour: str) -> int:
    """How many shapes are filled with a colour."""
    return sum(f"fill: {colour}" in element.get("style", "") for element in parsed(uri).iter())


@pytest.mark.parametrize(
    "history",
    [
        {"epoch": [0], "train_loss": [1.0], "val_loss": [np.nan]},
        {"epoch": range(40), "train_loss": np.linspace(1, 0, 40), "val_loss": np.linspace(1, 0.1, 40)},
        {"epoch": [0, 1], "train_loss": [1.0, 0.5], "val_loss": [0.9, np.nan], "trace": [np.nan, 1.5]},
    ],
)
def test_curves_are_drawn_from_any_history(history: dict) -> None:
    assert parsed(training_curves(pd.DataFrame(history))).tag.endswith("svg")


def test_the_current_method_stands_out_in_every_panel() -> None:
    rows = {"majority": {"dice": 0.8, "cm_rmse": 0.2}, "pixel-cm": {"dice": 0.9}}
    chart = score_bars({"dense": rows, "one-label": rows}, "pixel-cm")
    assert bars(chart, "#0b5fa5") == 4  # two settings, two metrics; the unknown one has no length
    assert bars(chart, "#a9b3bf") == 4


def test_scores_of_one_method_share_a_panel() -> None:
    assert bars(score_bars({"": {"pixel-cm": {"dice": 0.9, "ged": 0.1}}}, "pixel-cm"), "#0b5fa5") == 2


def test_a_reliability_plot_has_a_point_for_every_bin_that_says_something() -> None:
    share = np.array([0.2, 0.5, 0.8, np.nan])
    curve = Reliability(confidence=share, accuracy=share, count=np.array([40, 3, 10, 0]))
    one, two = reliability({"this model": curve}, "probability"), reliability({"a": curve, "b": curve}, "probability")
    points = [sum(element.tag.endswith("use") and "stroke: #0b5fa5" in element.get("style", "")
                  for element in parsed(chart).iter()) for chart in (one, two)]  # fmt: skip
    assert points == [2 + 1, 2 + 1]  # the legend has one as well
    assert "#c2510a" in b64decode(two.split(",")[1]).decode()


def test_the_same_input_gives_the_same_chart_and_leaves_settings_alone() -> None:
    before = dict(matplotlib.rcParams)
    scores = {"": {"pixel-cm": {"dice": 0.9}}}
    assert score_bars(scores, "pixel-cm") == score_bars(scores, "pixel-cm")
    assert dict(matplotlib.rcParams) == before


def test_neither_pyplot_nor_torch_is_loaded() -> None:
    code = "import sys, annotruth.reporting; print([m for m in ('matplotlib.pyplot', 'torch') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
