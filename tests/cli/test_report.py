"""annotruth report: one HTML file about a run."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# Trainings of one epoch: a model that knows little is rightly doubted.
pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")

Run = Callable[..., Any]


RATERS = ("blank", "good", "over", "under", "wrong")


def test_reporting(annotruth: Run, home: Path, out: Path) -> None:
    ended = annotruth("report", home / "run", "-o", out / "seen.html")
    assert ended.code == 0
    assert "in a browser" in ended.out
    page = (out / "seen.html").read_text()
    assert all(rater in page for rater in RATERS)


def test_the_queue_in_the_report_and_a_page_for_each_rater(annotruth: Run, home: Path, out: Path) -> None:
    cases = Path(shutil.copytree(home / "cases", out / "cases"))
    next(iter((cases / "raters").glob("good/*"))).unlink()
    queue = out / "queue.csv"
    assert annotruth("next", cases, "--budget", 1, "--strategy", "random", "-o", queue).code == 0
    ended = annotruth("report", home / "run", "-o", out / "r.html", "--queue", queue, "--raters", out / "pages")
    assert ended.code == 0
    assert "What to label next" in (out / "r.html").read_text()
    assert {path.stem for path in (out / "pages").iterdir()} == set(RATERS)
    ended = annotruth("report", home / "run", "-o", out / "r.html", "--queue", out / "none.csv")
    assert ended.code == 2
    assert "there is no such file" in ended.err


def test_folds_have_a_report_each(annotruth: Run, folds: Path) -> None:
    ended = annotruth("report", folds)
    assert ended.code == 2
    assert f"{folds} holds 2 folds, each a run of its own; name one, as {folds / 'fold_0'}" in ended.err
