"""Gleason 2019: grades by several pathologists."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import annotruth as at
from annotruth.io import check


def test_grades_by_pathologist(example_gleason_2019: Path) -> None:
    loaded = at.load(example_gleason_2019)
    assert loaded.raters == ("pathologist_1", "pathologist_2")
    assert loaded.groups == ("slide001", "slide001", "slide002")
    assert np.unique(loaded.masks[0, 0]).tolist() == [0, 1, 2]
    assert np.unique(loaded.masks[0, 1]).tolist() == [0, 2, 3]


def test_a_map_without_its_image_is_named(example_gleason_2019: Path) -> None:
    (example_gleason_2019 / "Train Imgs" / "slide002_core001.jpg").unlink()
    fatal = [problem for problem in check(example_gleason_2019) if problem.severity == "fatal"]
    assert {problem.case for problem in fatal} == {"slide002_core001"}
