"""Labelme: a JSON file per image, in a folder per rater."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from annotruth.errors import InputError
from annotruth.io.contents import Contents
from annotruth.io.drawn import Drawn, parsing, read_json
from annotruth.io.problems import Report
from annotruth.io.rasterise import box_ring, ellipse_ring
from annotruth.io.shapes import Rings
from annotruth.io.sources import register
from annotruth.io.sources.imports import ImportSource


@register
class Labelme(ImportSource):
    """<rater>/<image>.json with "shapes", "imagePath", "imageHeight" and "imageWidth"."""

    name = "Labelme folder"
    key = "labelme"
    description = "a folder of Labelme's JSON files, in a folder per rater"
    kind = "masks"
    identity = "the folder's name"
    inputs = ("images", "duplicates")

    def matches(self, path: Path) -> bool:
        return path.is_dir() and any(_is_labelme(file) for file in sorted(path.rglob("*.json"))[:3])

    def read(self, path: Path, report: Report, **inputs: Any) -> Contents:
        drawn = Drawn(path, report, **inputs)
        for file in sorted(path.rglob("*.json")):
            if not _is_labelme(file):
                continue
            with parsing(report, file):
                content = read_json(file)
                size = (int(content["imageHeight"]), int(content["imageWidth"]))
                shapes = [_shape(each) for each in content["shapes"]]
                rater = file.parent.name
                drawn.add(file, str(content["imagePath"]), size, rater, rater, shapes)
        return drawn.contents()


def _is_labelme(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            head = opened.read(1 << 20)
    except OSError:
        return False
    return b'"shapes"' in head and b'"label"' in head and b'"points"' in head


def _shape(content: dict[str, Any]) -> Rings:
    points = np.array(content["points"], dtype=np.float64)
    kind = content.get("shape_type") or "polygon"
    if kind == "rectangle":
        return Rings(content["label"], (box_ring(*points.min(axis=0), *points.max(axis=0)),))
    if kind == "circle":
        radius = float(np.linalg.norm(points[1] - points[0]))
        return Rings(content["label"], (ellipse_ring(tuple(points[0]), (radius, radius)),))
    if kind != "polygon":
        raise InputError(f"a shape of {content['label']} is a {kind}, which has no area. Draw a polygon, or remove it.")
    return Rings(content["label"], (points,))
