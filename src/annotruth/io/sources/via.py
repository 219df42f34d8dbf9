"""VIA, the VGG Image Annotator: a project or an export in JSON, one for each rater."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from annotruth.errors import InputError, shorten
from annotruth.io.contents import Contents
from annotruth.io.drawn import MANY, Drawn, json_files, own_json, parsing, peek_json, rater_of_file
from annotruth.io.problems import Report
from annotruth.io.rasterise import box_ring, ellipse_ring
from annotruth.io.shapes import NoArea, Rings, Shape, point_shape
from annotruth.io.sources import register
from annotruth.io.sources.imports import ImportSource

METADATA = "_via_img_metadata"
NO_CLASS = "object"
"""The class of regions that have no attribute at all."""


@register
class Via(ImportSource):
    """{"<name><size>": {"filename": …, "regions": [{"shape_attributes": …, "region_attributes": …}]}}."""

    name = "VIA file"
    key = "via"
    description = "VIA's project or annotations in JSON: polygons, boxes, circles, ellipses"
    kind = "masks"
    holds = ("image", "polygon", "box", "ellipse", "point")
    identity = "the file's or folder's name"
    inputs = ("images", "duplicates")
    options: ClassVar[dict[str, str]] = {"attribute": "the attribute of regions that holds the class"}
    suffixes = (".json",)

    def matches(self, path: Path) -> bool:
        return any(_pictures(peek_json(file)) is not None for file in json_files(path)[:MANY])

    def read(self, path: Path, report: Report, **inputs: Any) -> Contents:
        attribute = inputs.pop("attribute", None)
        drawn = Drawn(path, report, **inputs)
        for file, content in own_json(path, report, lambda content: _pictures(content) is not None):
            rater = rater_of_file(file)
            with parsing(report, file):
                pictures = _pictures(content) or {}
                name = _class_attribute(pictures, attribute)
                for picture in pictures.values():
                    image = str(picture["filename"])
                    with parsing(report, file, image, rater):
                        shapes = [_shape(region, name) for region in _regions(picture)]
                        drawn.add(file, image, drawn.size_of(image), rater, rater, shapes)
        return drawn.contents()


def _pictures(content: Any) -> dict[str, Any] | None:
    """The pictures of a project, or of an export; None where it is neither."""
    if not isinstance(content, dict):
        return None
    pictures = content.get(METADATA, content)
    if not isinstance(pictures, dict) or not pictures:
        return None
    first = next(iter(pictures.values()))
    return pictures if isinstance(first, dict) and {"filename", "regions"} <= first.keys() else None


def _regions(picture: dict[str, Any]) -> list[dict[str, Any]]:
    regions = picture["regions"]
    return list(regions.values()) if isinstance(regions, dict) else list(regions)  # an object in version 1


def _class_attribute(pictures: dict[str, Any], wanted: str | None) -> str | None:
    """The attribute that holds the class: the one that is asked for, or the only one."""
    names = {
        name: None
        for picture in pictures.values()
        for region in _regions(picture)
        for name in region.get("region_attributes", {})
    }
    if wanted is None and len(names) > 1:
        raise InputError(f"regions have several attributes ({shorten(list(names))}). Name one: --option attribute=…")
    if wanted is not None and wanted not in names:
        raise InputError(f"no region has the attribute {wanted}; there are {shorten(list(names)) or 'none'}.")
    return wanted or next(iter(names), None)


def _shape(region: dict[str, Any], attribute: str | None) -> Shape:
    form = region["shape_attributes"]
    value = NO_CLASS if attribute is None else region.get("region_attributes", {}).get(attribute)
    if isinstance(value, dict):  # ticked boxes
        ticked = [name for name, is_on in value.items() if is_on]
        value = ticked[0] if len(ticked) == 1 else None
    if not value:
        raise InputError(f"a region does not have one value of {attribute}, its class. Choose one.")
    kind, label = form["name"], str(value)
    if kind == "polygon":
        return Rings(label, (np.stack([form["all_points_x"], form["all_points_y"]], axis=1).astype(np.float64),))
    if kind == "rect":
        left, top = float(form["x"]), float(form["y"])
        return Rings(label, (box_ring(left, top, left + float(form["width"]), top + float(form["height"])),))
    if kind in ("circle", "ellipse"):
        radii = (form["r"], form["r"]) if kind == "circle" else (form["rx"], form["ry"])
        angle = float(form.get("theta", 0)) * 180 / np.pi
        centre = (float(form["cx"]), float(form["cy"]))
        return Rings(label, (ellipse_ring(centre, (float(radii[0]), float(radii[1])), angle),))
    if kind == "point":
        return point_shape(label, kind, [[form["cx"], form["cy"]]])
    return NoArea(label, str(kind))
