"""QuPath's GeoJSON: polygons with holes, several parts, classes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.io import check, load_objects

OUTER, HOLE = [[0, 0], [6, 0], [6, 6], [0, 6], [0, 0]], [[2, 2], [4, 2], [4, 4], [2, 4], [2, 2]]


def write(path: Path, *geometries: dict[str, Any], name: str | None = "Tumor", collection: bool = True) -> Path:
    found = {} if name is None else {"classification": {"name": name, "color": [1, 2, 3]}}
    features = [
        {"type": "Feature", "id": "x", "geometry": each, "properties": {"objectType": "annotation", **found}}
        for each in geometries
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features} if collection else features))
    return path


@pytest.fixture
def folder(tmp_path: Path, put: Any) -> Path:
    put(tmp_path / "x" / "slide.tiff", np.zeros((8, 9), np.uint8))
    return tmp_path / "x"


@pytest.mark.parametrize("collection", [True, False])
def test_polygons_have_holes_and_parts(folder: Path, collection: bool) -> None:
    ring = {"type": "Polygon", "coordinates": [OUTER, HOLE]}
    two = {"type": "MultiPolygon", "coordinates": [[OUTER, HOLE], [[[7, 7], [9, 7], [9, 8], [7, 8], [7, 7]]]]}
    write(folder / "ann" / "slide.geojson", ring, collection=collection)
    write(folder / "bob" / "slide.geojson", two, collection=collection)
    found = at.load(folder)
    assert (found.items, found.raters, found.classes) == (("slide",), ("ann", "bob"), ("background", "Tumor"))
    assert found.masks.sum(axis=(0, 2, 3)).tolist() == [32, 34]
    assert found.has_images


def test_without_images_the_size_is_given(tmp_path: Path) -> None:
    path = write(tmp_path / "x" / "ann" / "slide.json", {"type": "Polygon", "coordinates": [OUTER]}, name=None).parents[
        1
    ]
    assert "GeoJSON does not tell the size" in check(path)[0].message
    found = at.load(path, size="10,12")
    assert (found.shape(0), found.classes) == ((10, 12), ("background", "object"))


def test_what_has_no_area_is_named(folder: Path) -> None:
    write(folder / "ann" / "slide.geojson", {"type": "Point", "coordinates": [1, 1]})
    [problem, *_] = check(folder)
    assert (problem.case, problem.rater) == ("slide", "ann")
    assert "only shapes without an area (Point)" in problem.message
    assert load_objects(folder).boxes.tolist() == [[1, 1, 1, 1]]
    write(folder / "ann" / "slide.geojson", {"type": "LineString", "coordinates": [[1, 1], [2, 2]]})
    assert "only shapes without an area (LineString)" in check(folder)[0].message


def test_a_list_of_nothing_is_not_taken_for_qupaths(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[]")
    with pytest.raises(InputError, match="not a data set of a known kind"):
        at.load(tmp_path / "a.json")
