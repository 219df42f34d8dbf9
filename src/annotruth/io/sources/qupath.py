"""QuPath: a GeoJSON file per image, in a folder per rater."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from annotruth.errors import InputError
from annotruth.io.contents import Contents
from annotruth.io.drawn import MANY, Drawn, files_at, json_files, parsing, peek_json, read_json
from annotruth.io.files import suffix_of
from annotruth.io.formats import SUFFIXES
from annotruth.io.problems import Report
from annotruth.io.shapes import NoArea, Rings, Shape, point_shape
from annotruth.io.sources import register
from annotruth.io.sources.imports import ImportSource

NO_CLASS = "object"
"""The class of objects that have none."""


@register
class QuPath(ImportSource):
    """<rater>/<image>.geojson with a FeatureCollection, or a list of features."""

    name = "QuPath folder"
    key = "qupath"
    description = "a folder of QuPath's GeoJSON files, in a folder per rater: polygons with holes"
    kind = "masks"
    holds = ("image", "polygon", "point")
    identity = "the folder's name"
    inputs = ("images", "duplicates")
    options: ClassVar[dict[str, str]] = {"size": "height,width of all images, where the images are not there"}

    def matches(self, path: Path) -> bool:
        contents = (peek_json(file) for file in _files(path)[:MANY])
        return any(each != [] and _features(each) is not None for each in contents)  # [] may be anybody's

    def read(self, path: Path, report: Report, **inputs: Any) -> Contents:
        given = inputs.pop("size", None)
        drawn = Drawn(path, report, **inputs)
        for file in _files(path):
            rater = file.parent.name
            with parsing(report, file, file.stem, rater):
                features = _features(read_json(file))
                if features is None:
                    continue
                image, size = _image(drawn, file.stem) if given is None else (file.stem, _size(given))
                drawn.add(file, image, size, rater, rater, list(_shapes(features)))
        return drawn.contents()


def _files(path: Path) -> list[Path]:
    return sorted({*json_files(path), *(files_at(path, "*.geojson") if path.is_dir() else [])})


def _features(content: Any) -> list[dict[str, Any]] | None:
    """The features of a collection, or of a list; None where it is neither."""
    if isinstance(content, dict) and content.get("type") == "FeatureCollection":
        content = content.get("features")
    if not isinstance(content, list):
        return None
    return content if all(isinstance(each, dict) and each.get("type") == "Feature" for each in content) else None


def _image(drawn: Drawn, stem: str) -> tuple[str, tuple[int, int]]:
    """The image of a file's name, with whatever suffix it has, and its size."""
    for name in (stem, *(f"{stem}{suffix}" for suffix in SUFFIXES)) if suffix_of(stem) is None else (stem,):
        try:
            return name, drawn.size_of(name)
        except InputError:
            continue
    raise InputError(
        f"GeoJSON does not tell the size of the image {stem}, and the image was not found. "
        "Name the folder of images, --images, or the size, --option size=height,width."
    )


def _size(given: Any) -> tuple[int, int]:
    numbers = [int(number) for number in (given.split(",") if isinstance(given, str) else given)]
    if len(numbers) != 2:
        raise InputError("the size is height,width, as --option size=512,512.")
    return numbers[0], numbers[1]


def _shapes(features: list[dict[str, Any]]) -> Iterator[Shape]:
    for feature in features:
        geometry, properties = feature["geometry"], feature.get("properties") or {}
        found = properties.get("classification") or {}
        label = str(found.get("name") or "/".join(found.get("names", [])) or NO_CLASS)
        parts = {"Polygon": [geometry["coordinates"]], "MultiPolygon": geometry["coordinates"]}.get(geometry["type"])
        if parts is None:
            is_point = geometry["type"] in ("Point", "MultiPoint")
            kind, places = str(geometry["type"]), geometry["coordinates"]
            yield point_shape(label, kind, np.atleast_2d(places)[:, :2]) if is_point else NoArea(label, kind)
        for rings in parts or ():
            yield Rings(label, tuple(np.array(ring, dtype=np.float64)[:, :2] for ring in rings))
