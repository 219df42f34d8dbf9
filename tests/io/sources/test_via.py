"""VIA's projects and exports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import annotruth as at
from annotruth.io import check, load_objects

POLYGON = {"name": "polygon", "all_points_x": [1, 5, 5, 1], "all_points_y": [1, 1, 3, 3]}


@pytest.fixture
def pictures(tmp_path: Path, put: Any) -> Path:
    put(tmp_path / "a.png", np.zeros((8, 9), np.uint8))
    return tmp_path


def write(path: Path, *forms: dict[str, Any], attributes: dict[str, Any] | None = None, project: bool = True) -> Path:
    given = {"type": "cell"} if attributes is None else attributes
    regions = [{"shape_attributes": form, "region_attributes": given} for form in forms]
    inner = {"a.png123": {"filename": "a.png", "size": 123, "regions": regions, "file_attributes": {}}}
    path.write_text(json.dumps({"_via_settings": {}, "_via_img_metadata": inner} if project else inner))
    return path


@pytest.mark.parametrize(
    ("form", "pixels"),
    [
        (POLYGON, 8),
        ({"name": "rect", "x": 1, "y": 1, "width": 4, "height": 2}, 8),
        ({"name": "circle", "cx": 4, "cy": 4, "r": 2}, 12),
        ({"name": "ellipse", "cx": 4, "cy": 4, "rx": 2, "ry": 2, "theta": 1.0}, 12),
    ],
)
@pytest.mark.parametrize("project", [True, False])
def test_every_kind_of_area(pictures: Path, form: dict[str, Any], pixels: int, project: bool) -> None:
    found = at.load(write(pictures / "ann.json", form, project=project))
    assert (found.items, found.raters, found.classes) == (("a",), ("ann",), ("background", "cell"))
    assert found.masks.sum() == pixels


def test_the_class_is_an_attribute(pictures: Path) -> None:
    path = write(pictures / "ann.json", POLYGON, attributes={"kind": {"tumour": True, "other": False}, "sure": "yes"})
    assert "several attributes (kind, sure)" in check(path)[0].message
    assert at.load(path, attribute="kind").classes == ("background", "tumour")
    assert "no region has the attribute size" in check(path, attribute="size")[0].message
    assert at.load(write(path, POLYGON, attributes={})).classes == ("background", "object")


@pytest.mark.parametrize(
    ("form", "attributes", "message"),
    [
        ({"name": "point", "cx": 1, "cy": 1}, None, "only shapes without an area (point)"),
        ({"name": "polyline", "all_points_x": [1], "all_points_y": [1]}, None, "without an area (polyline)"),
        (POLYGON, {"type": {"a": True, "b": True}}, "does not have one value of type"),
        ({"name": "rect", "x": 1}, None, "'y' is missing"),
    ],
)
def test_bad_regions_are_named(pictures: Path, form: dict[str, Any], attributes: Any, message: str) -> None:
    [problem, *_] = check(write(pictures / "ann.json", form, attributes=attributes))
    assert (problem.case in ("a", "a.png"), problem.rater) == (True, "ann")
    assert message in problem.message


def test_without_the_image_there_is_no_size(tmp_path: Path) -> None:
    assert "size of the image a.png" in check(write(tmp_path / "ann.json", POLYGON))[0].message


def test_points_are_objects(pictures: Path) -> None:
    path = write(pictures / "ann.json", {"name": "point", "cx": 3, "cy": 2})
    assert load_objects(path).boxes.tolist() == [[3, 2, 3, 2]]
