"""Labelme: a JSON file per image, in a folder per rater."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from annotruth.errors import InputError
from annotruth.io.contents import Contents
from annotruth.io.drawn import MANY, Drawn, files_at, json_files, parsing, read_json
from annotruth.io.problems import Report
from annotruth.io.rasterise import box_ring, ellipse_ring
from annotruth.io.shapes import NoArea, Rings, Shape, Window, png_pixels, point_shape
from annotruth.io.sources import register
from annotruth.io.sources.imports import ImportSource


@register
class Labelme(ImportSource):
    """<rater>/<image>.json with "shapes", "imagePath", "imageHeight" and "imageWidth"."""

    name = "Labelme folder"
    key = "labelme"
    description = "a folder of Labelme's JSON files, in a folder per rater: polygons, masks, boxes, circles"
    kind = "masks"
    holds = ("image", "mask", "polygon", "box", "ellipse", "point")
    identity = "the folder's name"
    inputs = ("images", "duplicates")

    def matches(self, path: Path) -> bool:
        return any(_is_labelme(file) for file in json_files(path)[:MANY])

    def read(self, path: Path, report: Report, **inputs: Any) -> Contents:
        drawn = Drawn(path, report, **inputs)
        for file in files_at(path, "*.json"):
            rater = file.parent.name
            with parsing(report, file, file.stem, rater):
                content = read_json(file)
                if not _is_labelme(file):
                    continue
                image, path_told = _image(file, content)
                drawn.call(image, path_told, path_told)
                told = content.get("imageHeight"), content.get("imageWidth")
                size = (int(told[0]), int(told[1])) if None not in told else drawn.size_of(image)
                drawn.add(file, image, size, rater, rater, [_shape(each) for each in content["shapes"]])
        return drawn.contents()


def _is_labelme(file: Path) -> bool:
    """Whether the head of a file has Labelme's words; files with pictures in them are large."""
    try:
        with file.open("rb") as opened:
            head = opened.read(1 << 16)
    except OSError:
        return False
    return b'"shapes"' in head and (b'"imagePath"' in head or b'"points"' in head or b'"flags"' in head)


def _image(file: Path, content: dict[str, Any]) -> tuple[str, str]:
    """What an image goes by, and its path.

    Labelme tells the path from where the file lies, so that each rater's may be another. Where the file is named after
    the image, as Labelme does, that name tells it.
    """
    told = str(content.get("imagePath") or f"{file.stem}.png").replace("\\", "/")
    return (PurePosixPath(told).name if PurePosixPath(told).stem == file.stem else told), told


def _shape(content: dict[str, Any]) -> Shape:
    label, kind = str(content["label"]), content.get("shape_type") or "polygon"
    points = np.array(content["points"], dtype=np.float64).reshape(-1, 2)
    if not np.isfinite(points).all():
        raise InputError(f"the points of a shape of {label} are not all numbers. Correct or remove it.")
    if kind == "rectangle":
        return Rings(label, (box_ring(*points.min(axis=0), *points.max(axis=0)),))
    if kind == "circle":
        radius = float(np.linalg.norm(points[1] - points[0]))
        return Rings(label, (ellipse_ring((points[0, 0], points[0, 1]), (radius, radius)),))
    if kind == "mask":
        left, top = np.rint(points[0]).astype(int).tolist()
        right, bottom = np.rint(points[1]).astype(int).tolist()
        return Window(label, left, top, (bottom - top + 1, right - left + 1), png_pixels, content["mask"])
    if kind not in ("polygon", "oriented_rectangle"):
        return point_shape(label, kind, points) if kind in ("point", "points") else NoArea(label, str(kind))
    return Rings(label, (points,))
