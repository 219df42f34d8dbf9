"""Labelbox: an exported project, one JSON object per data row, with the labels of everybody who worked on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from PIL import Image

from annotruth.errors import InputError, shorten
from annotruth.io.contents import Contents
from annotruth.io.crowd import peek_json, read_json_lines
from annotruth.io.drawn import MANY, Answered, Drawn, files_at, parsing
from annotruth.io.problems import Report
from annotruth.io.shapes import Box, NoArea, Rings, Shape, Window, point_shape
from annotruth.io.sources import register
from annotruth.io.sources.imports import ImportSource

SUFFIXES = (".ndjson", ".jsonl", ".json")


class _Labelbox(ImportSource):
    identity = "created_by of each label, which stands there if label details are exported"
    inputs = ("images", "duplicates")
    suffixes = SUFFIXES
    wants_objects: ClassVar[bool]

    def matches(self, path: Path) -> bool:
        files = [file for file in _files(path)[:MANY] if _is_row(peek_json(file))]
        return bool(files) and any(map(_has_objects, files)) == self.wants_objects


@register
class Labelbox(_Labelbox):
    """{"data_row": …, "media_attributes": …, "projects": {id: {"labels": [{"annotations": {"objects": …}}]}}}."""

    name = "Labelbox export"
    key = "labelbox"
    description = "Labelbox's export (NDJSON) with polygons, boxes and, once they are downloaded, masks"
    kind = "masks"
    holds = ("image", "mask", "polygon", "box", "point")
    wants_objects = True

    def read(self, path: Path, report: Report, **inputs: Any) -> Contents:
        drawn, masks = Drawn(path, report, **inputs), _Masks(path)
        for label in _labels(path, report, drawn.notes):
            with parsing(report, label.file, label.image, label.rater):
                size = label.size or drawn.size_of(label.image)
                shapes = [_shape(each, size, masks) for each in _listed(label.annotations, "objects")]
                drawn.add(label.file, label.image, size, label.rater, label.rater, shapes)
        return drawn.contents()


@register
class LabelboxChoices(_Labelbox):
    """{"data_row": …, "projects": {id: {"labels": [{"annotations": {"classifications": [{"radio_answer": …}]}}]}}}."""

    name = "Labelbox export of classifications"
    key = "labelbox-choices"
    description = "Labelbox's export (NDJSON) with classifications alone: one class per data row"
    kind = "labels"
    holds = ("image", "class")
    options: ClassVar[dict[str, str]] = {"question": "the name of the classification, where a label has several"}
    wants_objects = False

    def read(self, path: Path, report: Report, **inputs: Any) -> Contents:
        answered = Answered(path, report, inputs.get("images"))
        for label in _labels(path, report, answered.notes):
            with parsing(report, label.file, label.image, label.rater):
                answer = _choice(label.annotations, inputs.get("question"))
                if answer is not None:
                    answered.add(label.image, label.rater, label.rater, answer, **label.times)
        return answered.contents()


@dataclass(frozen=True)
class _Label:
    """What one person did with one data row; ``size`` (height, width) is None where the export does not tell it."""

    file: Path
    image: str
    size: tuple[int, int] | None
    rater: str
    annotations: dict[str, Any]
    times: dict[str, Any]


def _files(path: Path) -> list[Path]:
    return [file for file in files_at(path, "*.*json*") if file.suffix.lower() in SUFFIXES]


def _is_row(row: Any) -> bool:
    return isinstance(row, dict) and isinstance(row.get("data_row"), dict) and isinstance(row.get("projects"), dict)


def _has_objects(file: Path) -> bool:
    """Whether anything is drawn in a file; a file that cannot be read is told of later."""
    try:
        rows = (row for _, row in read_json_lines(file, lambda problem: None) if _is_row(row))
        works = (_listed(project, "labels") for row in rows for project in row["projects"].values())
        return any(_listed(label.get("annotations"), "objects") for labels in works for label in labels)
    except InputError:
        return False


def _listed(content: Any, key: str) -> list[dict[str, Any]]:
    found = content.get(key) if isinstance(content, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _labels(path: Path, report: Report, notes: list[str]) -> Iterator[_Label]:
    """Everybody's labels, telling of those that nobody signed."""
    unsigned = 0
    for file in _files(path):
        if path.is_dir() and not _is_row(peek_json(file)):
            continue
        for number, row in read_json_lines(file, report):
            with parsing(report, file, f"line {number}"):
                image, size = _image_of(row["data_row"]), _size_of(row.get("media_attributes"))
                for project in row["projects"].values():
                    for count, label in enumerate(_listed(project, "labels"), 1):
                        details = label.get("label_details") or {}
                        unsigned += not details.get("created_by")
                        rater = str(details.get("created_by") or f"{project.get('name') or file.stem}, label {count}")
                        annotations = label["annotations"]
                        if "frames" in annotations:
                            raise InputError("this is a video's label, which is not read. Export its frames as images.")
                        yield _Label(file, image, size, rater, annotations, _times(label, details))
    if unsigned:
        notes.append(
            f"{unsigned} labels do not say who made them: the first of each data row is taken as one rater's, the "
            "second as another's. Export with label details, to know."
        )


def _image_of(data_row: dict[str, Any]) -> str:
    """What the image's file is called: the name that users gave it, else its address."""
    for key in ("external_id", "global_key", "row_data", "id"):
        name = str(data_row.get(key) or "").split("?")[0]
        if name:
            return name.split("://")[-1]
    raise InputError("a data row has no name. Export it anew.")


def _size_of(about: Any) -> tuple[int, int] | None:
    known = isinstance(about, dict) and about.get("height") and about.get("width")
    return (int(about["height"]), int(about["width"])) if known else None


def _times(label: dict[str, Any], details: dict[str, Any]) -> dict[str, Any]:
    """When a label was made, and how many seconds it took, where that is exported."""
    took = (label.get("performance_details") or {}).get("seconds_to_create")
    found = {"created_at": details.get("created_at"), "lead_time": took}
    return {name: value for name, value in found.items() if value}


class _Masks:
    """Masks that users downloaded: an export only tells where they are, and that address asks for a key."""

    def __init__(self, path: Path) -> None:
        self._folder = path if path.is_dir() else path.parent

    @cached_property
    def _by_name(self) -> dict[str, Path]:
        return {file.stem: file for file in files_at(self._folder, "*.png")}

    def find(self, feature: str, label: str) -> Path:
        file = self._by_name.get(feature)
        if file is None:
            raise InputError(
                f"a mask of {label} lies at Labelbox, not in the export. Download it as {feature}.png beside the file."
            )
        return file


def _shape(content: dict[str, Any], size: tuple[int, int], masks: _Masks) -> Shape:
    label = str(content.get("name") or content["value"])
    if "bounding_box" in content:
        left, top, width, height = (float(content["bounding_box"][side]) for side in ("left", "top", "width", "height"))
        return Box(label, (left, top, left + width, top + height))
    if "polygon" in content:
        return Rings(label, (_points(content["polygon"]),))
    if "point" in content:
        return point_shape(label, "point", _points([content["point"]]))
    if "mask" in content or "composite_mask" in content:
        return Window(label, 0, 0, size, read_pixels, masks.find(str(content["feature_id"]), label))
    return NoArea(label, "line" if "line" in content else str(content.get("annotation_kind")))


def _points(points: list[dict[str, Any]]) -> np.ndarray:
    return np.array([[point["x"], point["y"]] for point in points], dtype=np.float64).reshape(-1, 2)


def read_pixels(file: Path, size: tuple[int, int]) -> np.ndarray:
    """Pixels of a downloaded mask: white, or any other colour than black, is inside."""
    try:
        with Image.open(file, formats=["PNG"]) as picture:
            pixels = np.array(picture.convert("L")) > 0
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise InputError(f"{file} cannot be read ({error}). Download it anew.") from error
    if pixels.shape != size:
        found, wanted = ("×".join(map(str, each)) for each in (pixels.shape, size))
        raise InputError(f"{file} has {found} pixels, the image {wanted}. Download it anew.")
    return pixels


def _choice(annotations: dict[str, Any], question: str | None) -> str | None:
    """The answer to the question, or to the only one; None where it was not answered."""
    asked = {str(each.get("name") or each.get("value")): each for each in _listed(annotations, "classifications")}
    answers = {name: each["radio_answer"] for name, each in asked.items() if isinstance(each.get("radio_answer"), dict)}
    if question is None and len(answers) > 1:
        raise InputError(f"there are answers to several questions ({shorten(list(answers))}). --option question=…")
    if question is not None and question in asked and question not in answers:
        raise InputError(f"{question} is not answered by one of several classes. Name another question.")
    chosen = answers.get(question) if question is not None else next(iter(answers.values()), None)
    return None if chosen is None else str(chosen.get("name") or chosen["value"])
