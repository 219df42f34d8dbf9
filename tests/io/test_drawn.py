"""Drawings, collected image by image: whose they are, and which image they belong to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from annotruth.errors import InputError
from annotruth.io.drawn import Drawn, parsing, rater_of_file, read_json
from annotruth.io.problems import Problem, refuse
from annotruth.io.shapes import Rings

SQUARE = Rings("cell", (np.array([[1, 1], [3, 1], [3, 3], [1, 3]]),))
FILE = Path("a.json")


def test_a_label_called_background_is_the_background(tmp_path: Path) -> None:
    drawn = Drawn(tmp_path, refuse)
    drawn.declare(["cell", "Background", "wall"])
    drawn.add(FILE, "a.png", (4, 4), 1, "ann", [SQUARE])
    assert drawn.contents().classes == ("Background", "cell", "wall")


def test_a_rater_twice_on_an_image_is_named_and_the_later_counts(tmp_path: Path) -> None:
    problems: list[Problem] = []
    for duplicates in ("error", "keep-last"):
        drawn = Drawn(tmp_path, problems.append, duplicates=duplicates)
        drawn.add(FILE, "a.png", (4, 4), 1, "ann", [SQUARE])
        drawn.add(FILE, "a.png", (4, 4), 1, "ann", [])
        [item] = drawn.contents().items
        assert item.masks["ann"].read().sum() == 0
    assert [(problem.severity, problem.rater) for problem in problems] == [("fatal", "ann"), ("warning", "ann")]


def test_two_raters_of_one_name_stay_two(tmp_path: Path) -> None:
    drawn = Drawn(tmp_path, refuse)
    for rater in (7, 8):
        drawn.add(FILE, "a.png", (4, 4), rater, "Ann", [])
    assert drawn.contents().raters == ("Ann (7)", "Ann (8)")


@pytest.mark.parametrize("size", [(0, 4), (-3, 4), (10**6, 10**6)])
def test_impossible_sizes_are_refused(tmp_path: Path, size: tuple[int, int]) -> None:
    with pytest.raises(InputError, match="pixels cannot be"):
        Drawn(tmp_path, refuse).add(FILE, "a.png", size, 1, "ann", [])


def test_without_any_image_there_are_masks_alone(tmp_path: Path) -> None:
    drawn = Drawn(tmp_path, refuse)
    drawn.add(FILE, "a.png", (4, 4), 1, "ann", [SQUARE])
    found = drawn.contents()
    assert found.items[0].image is None
    assert "No image was found" in found.notes[0]
    with pytest.raises(InputError, match="no such folder of images"):
        Drawn(tmp_path, refuse, images=tmp_path / "nowhere").contents()


def test_bad_json_says_where(tmp_path: Path) -> None:
    for text, message in (
        ('{"a": [', "line 1, column 8 is not JSON"),
        ("[" * 10**6, "nested too deeply"),
        ("1" * 5000, "a number that is too long"),
    ):
        (tmp_path / "a.json").write_text(text)
        with pytest.raises(InputError, match=message):
            read_json(tmp_path / "a.json")


def test_what_a_tool_would_not_write_is_a_problem_of_the_file() -> None:
    problems: list[Problem] = []
    with parsing(problems.append, FILE, "a", "ann"):
        {}["points"]  # type: ignore[index]
    with parsing(problems.append, FILE):
        int("x")
    assert "'points' is missing" in problems[0].message
    assert (problems[0].case, problems[1].case) == ("a", None)


def test_two_shapes_of_a_class_are_one_class(tmp_path: Path) -> None:
    drawn = Drawn(tmp_path, print)
    square = Rings("cell", (np.array([[1, 1], [4, 1], [4, 4]]),))
    drawn.add(tmp_path / "a.json", "a.png", (8, 9), "ann", "ann", [square, square])
    assert drawn.contents().classes == ("background", "cell")


@pytest.mark.parametrize(
    ("file", "rater"),
    [
        ("jobs/ann/annotations.xml", "ann"),
        ("jobs/ann/annotations/instances_default.json", "ann"),
        ("jobs/ann/train/_annotations.coco.json", "ann"),
        ("jobs/bob.json", "bob"),
        ("annotations/instances_default.json", "instances_default"),
    ],
)
def test_a_rater_is_called_after_the_first_name_that_is_not_everybodys(file: str, rater: str) -> None:
    assert rater_of_file(Path(file)) == rater
