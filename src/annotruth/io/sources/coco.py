"""COCO instances: one JSON file, or one for each rater; polygons, run lengths, boxes, keypoints."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from annotruth.errors import InputError
from annotruth.io.contents import Contents
from annotruth.io.drawn import MANY, Drawn, json_files, own_json, parsing, peek_json, rater_of_file
from annotruth.io.problems import Problem, Report
from annotruth.io.shapes import Rings, Shape, Window, box_shape, coco_pixels, point_shape
from annotruth.io.sources import register
from annotruth.io.sources.imports import ImportSource

RATER_FIELDS = ("rater", "annotator", "annotator_id")
"""Of an annotation, where several people's stand in one file; the format itself has none."""


@register
class Coco(ImportSource):
    """{"images": …, "annotations": …, "categories": …}."""

    name = "COCO file"
    key = "coco"
    description = "COCO instances in JSON (CVAT and others export it): polygons, run lengths, boxes, keypoints"
    kind = "masks"
    holds = ("image", "mask", "polygon", "box", "point")
    identity = f"the file's or folder's name, or a field of annotations ({', '.join(RATER_FIELDS)})"
    inputs = ("images", "duplicates")
    options: ClassVar[dict[str, str]] = {
        "rater": "the field of an annotation, or of its attributes, that names the rater"
    }
    suffixes = (".json",)

    def matches(self, path: Path) -> bool:
        return any(_is_coco(peek_json(file)) for file in json_files(path)[:MANY])

    def read(self, path: Path, report: Report, **inputs: Any) -> Contents:
        wanted = inputs.pop("rater", None)
        drawn = Drawn(path, report, **inputs)
        for file, content in own_json(path, report, _is_coco):
            with parsing(report, file):
                _add_file(drawn, file, content, wanted, report)
        return drawn.contents()


def _is_coco(content: Any) -> bool:
    if not isinstance(content, dict):
        return False
    return all(isinstance(content.get(key), list) for key in ("images", "annotations", "categories"))


def _add_file(drawn: Drawn, file: Path, content: dict[str, Any], wanted: str | None, report: Report) -> None:
    labels = {each["id"]: str(each["name"]) for each in sorted(content["categories"], key=lambda each: each["id"])}
    drawn.declare(list(labels.values()))
    joints = {each["id"]: list(map(str, each.get("keypoints") or ())) for each in content["categories"]}
    field = _rater_field(content["annotations"], wanted)
    whose: dict[Any, dict[str | None, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for annotation in content["annotations"]:
        rater = None if field is None else str(_value(annotation, field) or "unknown")
        whose[annotation.get("image_id")][rater].append(annotation)
    for image in content["images"]:
        drawings = whose.pop(image["id"], {})
        if field is None:  # one file, one rater, who has seen all its images
            drawings.setdefault(None, [])
        for rater, own in drawings.items():
            name = rater_of_file(file) if rater is None else rater
            with parsing(report, file, str(image["file_name"]), name):
                told = image.get("height"), image.get("width")
                size = (int(told[0]), int(told[1])) if None not in told else drawn.size_of(str(image["file_name"]))
                shapes = [shape for each in own for shape in _shapes(each, labels, joints, size)]
                drawn.add(file, str(image["file_name"]), size, name, name, shapes)
    for unknown, drawings in whose.items():
        count = sum(map(len, drawings.values()))
        message = f"{count} annotations are of an image with the id {unknown}, which the file does not list."
        report(Problem("fatal", file, None, None, message, "Add the image, or remove them."))


def _rater_field(annotations: list[dict[str, Any]], wanted: str | None) -> str | None:
    for field in RATER_FIELDS if wanted is None else (wanted,):
        if any(_value(annotation, field) is not None for annotation in annotations):
            return field
    if wanted is not None:
        raise InputError(f"no annotation has a field {wanted}. Name another, or none to take the file's name.")
    return None


def _value(annotation: dict[str, Any], field: str) -> Any:
    attributes = annotation.get("attributes")
    return annotation.get(field, attributes.get(field) if isinstance(attributes, dict) else None)


def _shapes(
    annotation: dict[str, Any], labels: dict[Any, str], joints: dict[Any, list[str]], size: tuple[int, int]
) -> Iterator[Shape]:
    """The shapes of one annotation: its parts lie beside each other, so there are no holes."""
    if annotation["category_id"] not in labels:
        known = ", ".join(map(str, labels))
        raise InputError(f"an annotation is of category {annotation['category_id']}, unknown here ({known}). Add it.")
    label, drawn = labels[annotation["category_id"]], annotation.get("segmentation")
    if isinstance(drawn, dict):
        told = tuple(map(int, drawn["size"]))
        if told != size:
            raise InputError(f"a mask of {label} is of an image of {told}, not {size} pixels. Export it anew.")
        yield Window(label, 0, 0, size, coco_pixels, drawn["counts"])
    elif drawn:
        for part in drawn:
            yield Rings(label, (np.array(part, dtype=np.float64).reshape(-1, 2),))
    elif annotation.get("bbox") and not annotation.get("keypoints"):  # whose box only goes around them
        left, top, width, height = map(float, annotation["bbox"])
        yield box_shape(label, (left, top, left + width, top + height))
    elif not annotation.get("keypoints"):
        raise InputError(f"an annotation of {label} has neither a segmentation nor a box. Correct or remove it.")
    if annotation.get("keypoints"):
        yield from _keypoints(label, joints[annotation["category_id"]], annotation["keypoints"])


def _keypoints(label: str, names: list[str], numbers: list[Any]) -> Iterator[Shape]:
    """Points that were set, each of a class of its own where the category names them: "person nose"."""
    points = np.array(numbers, dtype=np.float64).reshape(-1, 3)
    if names and len(names) != len(points):
        raise InputError(f"an annotation of {label} has {len(points)} keypoints, not {len(names)}. Correct it.")
    for number, (x, y, seen) in enumerate(points):
        if seen:  # 1 is hidden behind something, 2 is seen
            yield point_shape(f"{label} {names[number]}" if names else label, "keypoint", [[x, y]])
