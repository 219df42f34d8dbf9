"""annotruth check: what many files have in common is said once; --all and --json tell everything."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

Run = Callable[..., Any]


def _save(path: Path, array: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)


@pytest.fixture
def misfits(tmp_path: Path) -> Path:
    """270 masks that do not fit their images: 90 cases by 3 raters."""
    mask = np.zeros((6, 6), dtype=np.uint8)
    for number in range(90):
        _save(tmp_path / "images" / f"case_{number}.png", mask)
        for rater in ("ann", "bob", "cy"):
            _save(tmp_path / "raters" / rater / f"case_{number}.png", mask[:5])
    return tmp_path


def test_many_equal_fatal_problems_are_one_paragraph(annotruth: Run, misfits: Path) -> None:
    ended = annotruth("check", misfits)
    assert ended.code == 2
    lines = ended.out.splitlines()
    assert len(lines) <= 12, "270 lines before"
    assert lines[0].startswith("fatal 270 times: the mask has size 5×6 but the image has 6×6.")
    assert lines[0].endswith("Resample the mask to that grid.")
    assert lines[1].endswith("raters/ann/case_0.png (case case_0, rater ann)".replace("/", str(Path("/"))))
    assert sum("case_" in line for line in lines) == 3
    assert "… and 267 more (--all lists them)." in ended.out
    assert "270 fatal, 0 to look at." in ended.out


def test_all_lists_every_file(annotruth: Run, misfits: Path) -> None:
    ended = annotruth("check", misfits, "--all")
    assert ended.code == 2
    assert ended.out.count("fatal ") == 270
    assert ended.out.count("the mask has size 5×6") == 270


def test_json_is_every_problem_and_nothing_else(annotruth: Run, misfits: Path) -> None:
    ended = annotruth("check", misfits, "--json")
    assert (ended.code, ended.err) == (2, "")
    problems = json.loads(ended.out)
    assert len(problems) == 270
    assert problems[0] == {
        "severity": "fatal",
        "file": str(misfits / "raters" / "ann" / "case_0.png"),
        "case": "case_0",
        "rater": "ann",
        "message": "the mask has size 5×6 but the image has 6×6.",
        "advice": "Resample the mask to that grid.",
    }


def test_json_of_warnings_and_of_nothing(annotruth: Run, tmp_path: Path) -> None:
    mask = np.eye(6, dtype=np.uint8)
    for rater in ("ann", "bob"):
        _save(tmp_path / "raters" / rater / "a.png", mask)
    ended = annotruth("check", tmp_path, "--json")
    assert (ended.code, json.loads(ended.out)) == (0, [])
    _save(tmp_path / "raters" / "bob" / "b.png", mask * 0)
    ended = annotruth("check", tmp_path, "--json")
    assert (ended.code, [each["severity"] for each in json.loads(ended.out)]) == (0, ["warning"])


def test_problems_that_differ_in_numbers_and_names_stand_together(annotruth: Run, tmp_path: Path) -> None:
    for number in range(5):
        _save(tmp_path / "images" / f"case_{number}.png", np.zeros((6, 6), dtype=np.uint8))
        for rater in ("ann", "bob"):
            _save(tmp_path / "raters" / rater / f"case_{number}.png", np.eye(6, dtype=np.uint8)[:, : number + 1])
            (tmp_path / "raters" / rater / f"case_{number}.tif").write_bytes(b"again")
    ended = annotruth("check", tmp_path)
    assert ended.code == 2
    heads = [line for line in ended.out.splitlines() if " times: " in line]
    assert [head.split(" times: ")[0] for head in heads] == ["fatal 10", "fatal 10"]
    assert "the case is there twice, also as case_0.png." in heads[0]
    assert "the mask has size 6×1 but the image has 6×6." in heads[1]
    assert all(head.endswith("(Names and numbers differ.)") for head in heads)


def test_different_problems_stay_apart(annotruth: Run, tmp_path: Path) -> None:
    for case in "abc":
        _save(tmp_path / "images" / f"{case}.png", np.zeros((6, 6), dtype=np.uint8))
        for rater in ("ann", "bob"):
            _save(tmp_path / "raters" / rater / f"{case}.png", np.eye(6, dtype=np.uint8))
    _save(tmp_path / "raters/ann/a.png", np.zeros((6, 6, 3), dtype=np.uint8))
    (tmp_path / "raters/ann/b.png").write_bytes(b"nonsense")
    _save(tmp_path / "raters/bob/c.png", np.zeros((6, 6), dtype=np.uint8))
    ended = annotruth("check", tmp_path)
    assert "times:" not in ended.out
    assert ended.out.count("fatal ") == 2
    assert ended.out.count("warning ") == 1


# Trainings of one epoch: a model that knows little is rightly doubted.


def test_check_names_what_recurs_once(annotruth: Run, home: Path) -> None:
    ended = annotruth("check", home / "cases")
    assert ended.code == 0
    assert "rater blank" in ended.out
    assert "warning 12 times: the mask is empty" in ended.out
    assert "… and 9 more (--all lists them)." in ended.out
    assert "0 fatal, 12 to look at." in ended.out
    assert annotruth("check", home / "cases", "--all").out.count("rater blank") == 12


def test_check_of_a_sound_folder(annotruth: Run, cases: Path) -> None:
    shutil.rmtree(cases / "raters" / "blank")
    ended = annotruth("check", cases)
    assert (ended.code, ended.err) == (0, "")
    assert "No problem found" in ended.out
