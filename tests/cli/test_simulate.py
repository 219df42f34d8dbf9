"""annotruth simulate: cases with raters whose errors are known, the same ones every time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

# Trainings of one epoch: a model that knows little is rightly doubted.

Run = Callable[..., Any]

RATERS = ("blank", "good", "over", "under", "wrong")


def test_simulated_cases(home: Path) -> None:
    assert sorted(path.name for path in (home / "cases" / "raters").iterdir()) == sorted(RATERS)
    drawn, true = (np.asarray(Image.open(home / "cases" / part / "digit_7.png")) for part in ("raters/good", "truth"))
    np.testing.assert_array_equal(drawn, true)
    known = json.loads((home / "cases" / "confusion.json").read_text())
    assert known["orientation"] == "[true][observed]"
    assert known["raters"]["good"] == [[1, 0], [0, 1]]


def test_simulating_few_labels_the_same_way_twice(annotruth: Run, home: Path, tmp_path: Path, fingerprint: Run) -> None:
    for copy in "ab":
        ended = annotruth(
            "simulate", home / "digits", "-o", tmp_path / copy, "--raters", "good, over", "--keep", 1, "--seed", 3
        )
        assert ended.code == 0
        assert "12 cases by 2 raters" in ended.out
    assert fingerprint(tmp_path / "a") == fingerprint(tmp_path / "b")
    assert len(list((tmp_path / "a" / "raters").glob("*/*.png"))) == 12
