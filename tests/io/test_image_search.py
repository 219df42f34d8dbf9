"""Images that annotations speak of: found in the source, beside it or below, and never outside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import ExifTags, Image

from annotruth.io.drawn import Drawn
from annotruth.io.image_search import find_below, find_image, folders_of_images, images_below
from annotruth.io.problems import Problem
from annotruth.io.shapes import Rings

SQUARE = Rings("cell", (np.array([[1, 1], [3, 1], [3, 3], [1, 3]]),))
FILE = Path("a.json")
PIXELS = np.zeros((4, 4), np.uint8)


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


def below(source: Path, name: str) -> Path | None:
    return find_below([name], images_below(source, folders_of_images(source, None)))


def test_images_are_found_in_folders_below_by_the_longest_end_of_their_path(tmp_path: Path, put: Any) -> None:
    """As COCO's own layout has them, and as each job of a task comes with the same images."""
    in_default = put(tmp_path / "images" / "default" / "a.png", PIXELS)
    one = put(tmp_path / "ann" / "images" / "s" / "b.png", PIXELS)
    put(tmp_path / "bob" / "images" / "s" / "b.png", PIXELS)
    put(tmp_path / "__MACOSX" / "c.png", PIXELS)
    assert below(tmp_path, "A.png") in (in_default, tmp_path / "images" / "default" / "a.png")
    assert below(tmp_path, "slides/s/b.png") == one
    assert below(tmp_path, "c.png") is None
    assert below(tmp_path, "d.png") is None


def test_of_different_images_of_one_name_none_is_taken(tmp_path: Path, put: Any) -> None:
    put(tmp_path / "ann" / "a.png", PIXELS)
    other = put(tmp_path / "bob" / "a.png", np.arange(3600, dtype=np.uint8).reshape(60, 60))
    assert below(tmp_path, "a.png") is None
    assert below(tmp_path, "bob/a.png") == other


def test_what_lies_beside_a_file_is_not_searched_but_for_images(tmp_path: Path, put: Any) -> None:
    source = tmp_path / "export.json"
    source.touch()
    put(tmp_path / "other project" / "a.png", PIXELS)
    inside = put(tmp_path / "images" / "train" / "b.png", PIXELS)
    assert below(source, "a.png") is None
    assert below(source, "b.png") == inside


@pytest.mark.parametrize("name", ["..", "", "/", "../.."])
def test_a_path_without_a_name_finds_nothing(tmp_path: Path, put: Any, name: str) -> None:
    put(tmp_path / "a.png", PIXELS)
    assert find_image([name], [tmp_path]) is None
    assert below(tmp_path, name) is None


def test_of_an_image_that_is_turned_the_orientation_in_its_file_is_told(tmp_path: Path) -> None:
    orientation = Image.Exif()
    orientation[ExifTags.Base.Orientation] = 6
    Image.new("L", (5, 4)).save(tmp_path / "a.jpg", exif=orientation)
    problems: list[Problem] = []
    drawn = Drawn(tmp_path / "x.json", problems.append)
    drawn.add(FILE, "a.jpg", (4, 5), 1, "ann", [SQUARE])
    assert not drawn.contents().items
    assert "5×4 pixels, its annotations say 4×5" in problems[0].message
    assert "EXIF orientation" in str(problems[0])


def test_items_that_are_found_as_one_file_are_named(tmp_path: Path, put: Any) -> None:
    put(tmp_path / "images" / "a.png", PIXELS)
    problems: list[Problem] = []
    drawn = Drawn(tmp_path, problems.append)
    for rater, name in (("ann", "images/a.png"), ("bob", "a.png")):
        drawn.add(FILE, name, (4, 4), rater, rater, [SQUARE])
    assert len(drawn.contents().items) == 2
    assert [problem.message for problem in problems] == ["2 items have this file as their image: images/a.png, a.png."]
