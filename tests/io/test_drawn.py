"""Drawings, collected image by image: whose they are, and which image they belong to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from annotruth.errors import InputError
from annotruth.io.drawn import Drawn, find_image, parsing, read_json
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


def test_images_are_found_or_named_and_never_outside(tmp_path: Path, put: Any) -> None:
    put(tmp_path / "in" / "images" / "a.png", np.zeros((4, 4), np.uint8))
    put(tmp_path / "in" / "c.png", np.zeros((4, 5), np.uint8))
    put(tmp_path / "secret.png", np.zeros((4, 4), np.uint8))
    problems: list[Problem] = []
    drawn = Drawn(tmp_path / "in" / "x.json", problems.append)
    for name in ("sub/a.png", "b.png", "c.png", "../secret.png"):
        drawn.add(FILE, name, (4, 4), 1, "ann", [SQUARE])
    assert [item.name for item in drawn.contents().items] == ["a"]
    assert [problem.case for problem in problems] == ["b", "c", "secret"]
    assert "no image b.png" in problems[0].message
    assert "4×5 pixels, its annotations say 4×4" in problems[1].message


def test_images_are_found_whatever_their_letters_and_without_a_suffix(tmp_path: Path, put: Any) -> None:
    for name in ("frame_0.png", "frame_1.png", "twice.png", "twice.tif"):
        put(tmp_path / "images" / name, np.zeros((4, 4), np.uint8))
    (tmp_path / "images" / "frame_1.png").rename(tmp_path / "images" / "FRAME_1.PNG")
    for named, found in (("frame_0", "frame_0.png"), ("frame_1.png", "FRAME_1.PNG"), ("twice", None), ("x", None)):
        file = find_image([named], [tmp_path, tmp_path / "images"])
        assert (file.name if file else None) == found


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
