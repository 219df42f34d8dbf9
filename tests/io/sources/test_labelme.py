"""Labelme's JSON: every kind of shape, and what is wrong with one."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import annotruth as at
from annotruth.io import check, load_objects


def write(folder: Path, shapes: list[dict[str, Any]], rater: str = "ann", **more: Any) -> Path:
    content = {"version": "5.4", "flags": {}, "shapes": shapes, "imagePath": "..\\\\a.png", "imageData": None}
    (folder / rater).mkdir(parents=True, exist_ok=True)
    sizes = {"imageHeight": 8, "imageWidth": 9}
    (folder / rater / "a.json").write_text(json.dumps(content | sizes | more))
    return folder


def shape(kind: str | None, points: list[list[float]], **more: Any) -> dict[str, Any]:
    return {"label": "cell", "points": points, "shape_type": kind, "group_id": None, "flags": {}, **more}


def png(mask: np.ndarray) -> str:
    buffer = io.BytesIO()
    Image.fromarray(mask.astype(np.uint8)).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


@pytest.mark.parametrize(
    ("drawn", "pixels"),
    [
        (shape("polygon", [[1, 1], [5, 1], [5, 3], [1, 3]]), 8),
        (shape(None, [[1, 1], [5, 1], [5, 3], [1, 3]]), 8),
        (shape("rectangle", [[5, 3], [1, 1]]), 8),
        (shape("circle", [[4, 4], [4, 6]]), 12),
        (shape("mask", [[2, 3], [4, 4]], mask=png(np.array([[1, 0, 1], [1, 1, 1]]))), 5),
    ],
)
def test_every_kind_of_area(tmp_path: Path, drawn: dict[str, Any], pixels: int) -> None:
    found = at.load(write(tmp_path, [drawn]))
    assert (found.items, found.raters) == (("a",), ("ann",))
    assert found.masks.sum() == pixels


@pytest.mark.parametrize(
    ("drawn", "message"),
    [
        (shape("linestrip", [[1, 1], [2, 2]]), "only shapes without an area (linestrip)"),
        (shape("mask", [[2, 3], [9, 9]], mask=png(np.ones((2, 2)))), "reaches outside the image"),
        (shape("mask", [[2, 3], [4, 4]], mask=png(np.ones((2, 2)))), "2×2 pixels, where 2×3 are told of"),
        (shape("mask", [[2, 3], [4, 4]], mask="????"), "not a PNG in base64"),
        ({"points": [[1, 1]]}, "'label' is missing"),
    ],
)
def test_bad_shapes_are_named(tmp_path: Path, drawn: dict[str, Any], message: str) -> None:
    write(tmp_path, [], "bob")
    fatal = [problem for problem in check(write(tmp_path, [drawn])) if problem.severity == "fatal"]
    assert [(problem.file.parent.name, problem.case, problem.rater) for problem in fatal] == [("ann", "a", "ann")]
    assert message in fatal[0].message


def test_a_size_that_is_not_told_is_the_images(tmp_path: Path, put: Any) -> None:
    write(tmp_path, [], imageHeight=None, imageWidth=None)
    assert "does not tell the size" in check(tmp_path)[0].message
    put(tmp_path / "a.png", np.zeros((5, 6), np.uint8))
    assert at.load(tmp_path).shape(0) == (5, 6)


def test_points_are_objects(tmp_path: Path) -> None:
    cell = shape("polygon", [[1, 1], [5, 1], [5, 3], [1, 3]])
    path = write(tmp_path, [cell, shape("point", [[2.5, 4]])])
    assert load_objects(path).boxes.tolist() == [[1, 1, 5, 3], [2.5, 4, 2.5, 4]]
    assert at.load(path).masks.sum() == 8


def test_an_image_is_the_same_wherever_raters_files_lie(tmp_path: Path) -> None:
    for rater, told in (("ann", "a.png"), ("bob", "..\\images\\a.png"), ("cy", "../images/a.png")):
        write(tmp_path, [shape("polygon", [[1, 1], [5, 1], [5, 3], [1, 3]])], rater, imagePath=told)
    found = at.load(tmp_path)
    assert (found.items, found.raters) == (("a",), ("ann", "bob", "cy"))


def test_a_file_alone_is_read(tmp_path: Path) -> None:
    write(tmp_path, [shape("polygon", [[1, 1], [5, 1], [5, 3], [1, 3]])])
    assert at.load(tmp_path / "ann" / "a.json").raters == ("ann",)
