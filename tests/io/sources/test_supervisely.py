"""Supervisely's projects: bitmaps as its SDK packs them, polygons with holes, rectangles, and who drew them."""

from __future__ import annotations

import base64
import io
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import annotruth as at
from annotruth.io import check, load_objects


def pack(mask: np.ndarray) -> str:
    """A PNG with a palette whose first colour is transparent, deflated, in base64."""
    picture = Image.fromarray(mask.astype(np.uint8))
    picture.putpalette([0, 0, 0, 255, 255, 255])
    buffer = io.BytesIO()
    picture.save(buffer, format="PNG", transparency=0, optimize=0)
    return base64.b64encode(zlib.compress(buffer.getvalue())).decode()


def thing(kind: str, rater: str | None = "ann", **more: Any) -> dict[str, Any]:
    return {"classTitle": "cell", "geometryType": kind, "labelerLogin": rater, "tags": [], **more}


def write(folder: Path, name: str, *objects: dict[str, Any]) -> Path:
    content = {"description": "", "tags": [], "size": {"height": 8, "width": 9}, "objects": list(objects)}
    (folder / "ds0" / "ann").mkdir(parents=True, exist_ok=True)
    (folder / "ds0" / "ann" / f"{name}.png.json").write_text(json.dumps(content))
    (folder / "meta.json").write_text(json.dumps({"classes": [{"title": "cell"}], "tags": []}))
    return folder


RING = [[1, 1], [5, 1], [5, 5], [1, 5]]
MASK = np.array([[1, 0, 1], [1, 1, 1]])


@pytest.mark.parametrize(
    ("drawn", "pixels"),
    [
        (thing("bitmap", bitmap={"data": pack(MASK), "origin": [2, 3]}), 5),
        (thing("rectangle", points={"exterior": [[1, 1], [4, 2]], "interior": []}), 8),
        (thing("polygon", points={"exterior": RING, "interior": []}), 16),
        (thing("polygon", points={"exterior": RING, "interior": [[[2, 2], [4, 2], [4, 4], [2, 4]]]}), 12),
    ],
)
def test_every_kind_of_area(tmp_path: Path, drawn: dict[str, Any], pixels: int) -> None:
    found = at.load(write(tmp_path / "x", "a", drawn))
    assert (found.items, found.raters, found.classes) == (("a",), ("ann",), ("background", "cell"))
    assert found.masks.sum() == pixels
    if drawn["geometryType"] == "bitmap":
        assert found.masks[0, 0, 3:5, 2:5].tolist() == MASK.tolist()


def test_each_object_names_who_drew_it(tmp_path: Path, put: Any) -> None:
    box = {"exterior": [[1, 1], [4, 2]], "interior": []}
    folder = write(tmp_path / "x", "a", thing("rectangle", points=box), thing("rectangle", "bob", points=box))
    write(folder, "b", thing("rectangle", None, points=box))
    write(folder, "c")
    for name in "abc":
        put(folder / "ds0" / "img" / f"{name}.png", np.zeros((8, 9), np.uint8))
    found = at.load(folder)
    assert found.raters == ("ann", "bob", "x")
    assert found.labelled().tolist() == [[True, True, False], [False, False, True]]
    assert found.has_images
    assert any("nobody knows who looked at them" in problem.message for problem in check(folder))


@pytest.mark.parametrize(
    ("drawn", "message"),
    [
        (thing("point", points={"exterior": [[1, 1]]}), "only shapes without an area (point)"),
        (thing("bitmap", bitmap={"data": "????", "origin": [0, 0]}), "a bitmap cannot be unpacked"),
        (thing("bitmap", bitmap={"data": pack(MASK), "origin": [8, 0]}), "reaches outside"),
        (thing("bitmap", bitmap={"origin": [8, 0]}), "'data' is missing"),
    ],
)
def test_bad_objects_are_named(tmp_path: Path, drawn: dict[str, Any], message: str) -> None:
    [problem, *_] = check(write(tmp_path / "x", "a", drawn))
    assert problem.rater == "ann"
    assert message in problem.message


def test_points_are_objects(tmp_path: Path) -> None:
    path = write(tmp_path / "x", "a", thing("point", points={"exterior": [[1, 2]], "interior": []}))
    assert load_objects(path).boxes.tolist() == [[1.5, 2.5, 1.5, 2.5]], "the middle of the pixel"
