"""Label Studio: the JSON export, or JSON-MIN, with everybody's annotations of every task.

Who completed an annotation is the rater, unless it is marked as ground truth: then it is the known truth, and nobody's.
Cancelled annotations, drafts and predictions of models are left out.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np

from annotruth.errors import InputError, shorten
from annotruth.io.contents import Contents
from annotruth.io.drawn import MANY, TRUTH, Answered, Drawn, json_files, own_json, parsing, peek_json
from annotruth.io.files import suffix_of
from annotruth.io.problems import Problem, Report
from annotruth.io.rasterise import ellipse_ring
from annotruth.io.shapes import NoArea, Rings, Shape, Window, box_shape, brush_pixels, png_pixels, point_shape
from annotruth.io.sources import register
from annotruth.io.sources.imports import ImportSource

REGIONS = ("brush", "bitmask", "polygon", "rectangle", "ellipse", "keypoint")
UNKNOWN = "unknown"


class _LabelStudio(ImportSource):
    """What masks and choices have in common."""

    identity = "completed_by: the annotator's e-mail or name, or number"
    suffixes = (".json",)
    wants_regions: ClassVar[bool]

    def matches(self, path: Path) -> bool:
        kinds = {kind for file in json_files(path)[:MANY] for kind in _kinds(peek_json(file))}
        has_regions = any(kind.removesuffix("labels") in REGIONS for kind in kinds)
        return bool(kinds) and (has_regions if self.wants_regions else not has_regions and "choices" in kinds)


@register
class LabelStudioMasks(_LabelStudio):
    """[{"data": {"image": …}, "annotations": [{"completed_by": …, "result": [{"type": "brushlabels", …}]}]}]."""

    name = "Label Studio export"
    key = "label-studio"
    description = "Label Studio's JSON export: brushes, bitmasks, polygons, rectangles, ellipses"
    kind = "masks"
    holds = ("image", "mask", "polygon", "box", "ellipse", "point")
    inputs = ("images", "duplicates")
    wants_regions = True

    def read(self, path: Path, report: Report, **inputs: Any) -> Contents:
        drawn = Drawn(path, report, **inputs)
        for work in _annotations(path, report, drawn.notes):
            drawn.call(work.image, work.alias, work.origin)
            with parsing(report, work.file, work.image, work.name):
                size = work.size or drawn.size_of(work.image)
                drawn.add(work.file, work.image, size, work.rater, work.name, list(_shapes(work, size)))
        return drawn.contents()


@register
class LabelStudioChoices(_LabelStudio):
    """[{"data": {"image": …}, "annotations": [{"completed_by": …, "result": [{"type": "choices", …}]}]}]."""

    name = "Label Studio export of choices"
    key = "label-studio-choices"
    description = "Label Studio's JSON export with choices alone: one class per task"
    kind = "labels"
    holds = ("image", "class")
    inputs = ("images", "duplicates")
    options: ClassVar[dict[str, str]] = {"question": "the name of the Choices tag, where a task asks several"}
    wants_regions = False

    def read(self, path: Path, report: Report, **inputs: Any) -> Contents:
        question = inputs.get("question")
        answered = Answered(path, report, inputs.get("images"))
        for work in _annotations(path, report, answered.notes):
            with parsing(report, work.file, work.image, work.name):
                label = _choice(work, question)
                answered.call(work.image, work.alias, work.origin)
                if label is not None:
                    about = {name: work.about[name] for name in ("created_at", "lead_time") if work.about.get(name)}
                    answered.add(work.image, work.rater, work.name, label, **about)
        return answered.contents()


@dataclass(frozen=True)
class _Work:
    """One person's annotation of one task.

    Attributes
    ----------
    image, alias : the image's path, without and with what Label Studio puts before the name of an uploaded file
    origin : the address in the task's data
    rater, name : the annotator's number, and what is shown; TRUTH where it is marked as ground truth
    size : (height, width), from whatever anybody drew; None where nobody drew anything
    about : the annotation itself
    """

    file: Path
    image: str
    alias: str
    origin: str
    rater: Any
    name: str
    size: tuple[int, int] | None
    results: list[dict[str, Any]]
    about: dict[str, Any]


def _kinds(content: Any) -> set[str]:
    """The types of results in an export; none where it is no export."""
    if not isinstance(content, list) or not content or not isinstance(content[0], dict):
        return set()
    return {
        str(result.get("type"))
        for task in map(_whole_task, content)
        if isinstance(task, dict) and "data" in task
        for annotation in _listed(task, "annotations", "completions")
        for result in _listed(annotation, "result")
    }


def _whole_task(task: Any) -> Any:
    """A task as in the JSON export; JSON-MIN has a line for each annotation, with the controls as its keys."""
    if not isinstance(task, dict) or not {"annotator", "annotation_id"} <= task.keys():
        return task
    results: list[dict[str, Any]] = []
    for name, given in task.items():
        if isinstance(given, str) or (isinstance(given, dict) and isinstance(given.get("choices"), list)):
            chosen = given["choices"] if isinstance(given, dict) else [given]
            results.append({"type": "choices", "from_name": name, "value": {"choices": chosen}})
        for value in given if isinstance(given, list) else []:
            kind = next((key for key in value if key.endswith("labels")), None) if isinstance(value, dict) else None
            if kind is not None:
                sizes = {side: value.get(side) for side in ("original_width", "original_height")}
                results.append({"type": kind, "from_name": name, "value": value, **sizes})
    texts = {name: value for name, value in task.items() if isinstance(value, str) and suffix_of(_path_of(value))}
    results = [each for each in results if each["from_name"] not in (*texts, "created_at", "updated_at")]
    work = {"completed_by": task["annotator"], "result": results, "lead_time": task.get("lead_time")}
    return {"id": task.get("id"), "data": texts, "annotations": [work | {"created_at": task.get("created_at")}]}


def _listed(content: Any, *keys: str) -> list[dict[str, Any]]:
    """Objects in a list under the first of the keys that is there."""
    for key in keys:
        found = content.get(key) if isinstance(content, dict) else None
        if isinstance(found, list):
            return [each for each in found if isinstance(each, dict)]
    return []


def _annotations(path: Path, report: Report, notes: list[str]) -> Iterator[_Work]:
    """Everybody's annotations that count, telling of those that do not."""
    predicted, rated, true = 0, 0, 0
    for file, content in own_json(path, report, lambda content: bool(_kinds(content))):
        with parsing(report, file):
            tasks = [_whole_task(task) for task in content]
            sizes: dict[Any, tuple[int, int]] = {}  # by task, as in JSON-MIN each annotation stands on its own
            for task in tasks:
                if isinstance(task, dict) and (size := _size_of(task)) is not None:
                    sizes[task.get("id")] = size
            namesakes = _namesakes(tasks)
            if namesakes:
                names = shorten(sorted(namesakes))
                notes.append(f"Several uploads have the same name ({names}); each is an image of its own.")
            for task in tasks:
                predicted += len(_listed(task, "predictions"))
                works: list[_Work] = []
                with parsing(report, file, f"task {task.get('id')}"):
                    works = list(_of_task(file, task, sizes.get(task.get("id")), namesakes, report))
                true += (here := sum(work.rater is TRUTH for work in works))
                rated += len(works) - here
                yield from works
    if true and not rated:
        raise InputError(
            f"{path}: every annotation is marked as ground truth, so there is no rater. Take the mark off."
        )
    if true:
        notes.append(f"{true} annotations that are marked as ground truth are the known truth, and no rater's.")
    if predicted:
        notes.append(f"{predicted} predictions of models are left out.")


def _namesakes(tasks: list[Any]) -> set[str]:
    """Names that several uploads of a project have, but for what Label Studio puts before them."""
    uploads: dict[str, set[str]] = defaultdict(set)
    for task in tasks:
        if isinstance(task, dict) and isinstance(task.get("data"), dict):
            image, alias, _ = _image_of(task)
            uploads[image].add(alias)
    return {image for image, found in uploads.items() if len(found) > 1}


def _of_task(
    file: Path, task: dict[str, Any], size: tuple[int, int] | None, namesakes: set[str], report: Report
) -> Iterator[_Work]:
    image, alias, origin = _image_of(task)
    if image in namesakes:
        image = _without_upload(alias)
    annotations = _listed(task, "annotations", "completions")
    if len(places := _places(task)) > 1:
        raise InputError(
            f"regions lie on {len(places)} pictures of one task, and the export does not tell which. "
            "Make a task of each picture."
        )
    for annotation in annotations:
        rater, name = _rater_of(annotation)
        if annotation.get("was_cancelled") or annotation.get("skipped"):
            report(Problem("warning", file, image, name, "the annotator skipped this task.", "It is left out."))
        else:
            if annotation.get("ground_truth") is True:
                rater = TRUTH
            yield _Work(file, image, alias, origin, rater, name, size, _listed(annotation, "result"), annotation)


def _places(task: dict[str, Any]) -> set[tuple[str, str]]:
    """Where a task's regions lie: names of Image tags, and numbers of pages."""
    return {
        (str(result.get("to_name")), str(result.get("item_index") or 0))
        for annotation in _listed(task, "annotations", "completions")
        for result in _listed(annotation, "result")
        if str(result.get("type")).removesuffix("labels") in REGIONS
    }


def _image_of(task: dict[str, Any]) -> tuple[str, str, str]:
    """The image's path in a task's data, without and with what stands before an upload's name, and its address.

    It is the text that the regions' Image tag is named after, or the first that names a picture, or the only one.
    """
    texts = {key: value for key, value in task["data"].items() if isinstance(value, str)}
    only = next(iter(texts.values())) if len(texts) == 1 else f"task_{task.get('id')}"
    named = [texts[place] for place, _ in _places(task) if place in texts]
    origin = next((text for text in (*named, *texts.values()) if suffix_of(_path_of(text))), only)
    found = _path_of(origin)
    folder, slash, name = _without_upload(found).rpartition("/")
    return f"{folder}{slash}{re.sub('^[0-9a-f]{8}-', '', name)}", found, origin


def _without_upload(path: str) -> str:
    return re.sub("^/?data/upload/([0-9]+/)?", "", path).lstrip("/")


def _path_of(text: str) -> str:
    """The path in an address: of local files the part behind ?d=."""
    try:
        parts = urlsplit(text)
    except ValueError:  # of a machine "[", say
        return text
    inside = parse_qs(parts.query).get("d")
    return inside[0] if inside else unquote(parts.path) if suffix_of(parts.path) else text


def _size_of(task: dict[str, Any]) -> tuple[int, int] | None:
    for annotation in (*_listed(task, "annotations", "completions"), *_listed(task, "predictions")):
        for result in _listed(annotation, "result"):
            if result.get("original_width") and result.get("original_height"):
                return int(result["original_height"]), int(result["original_width"])
    return None


def _rater_of(annotation: dict[str, Any]) -> tuple[Any, str]:
    """What tells the annotator from others, and what is shown."""
    person = annotation.get("completed_by")
    if isinstance(person, dict):
        whole = " ".join(str(person.get(part) or "") for part in ("first_name", "last_name")).strip()
        shown = person.get("email") or person.get("username") or whole or f"user_{person.get('id')}"
        return person.get("id", shown), str(shown)
    return (UNKNOWN, UNKNOWN) if person is None else (person, f"user_{person}")


def _shapes(work: _Work, size: tuple[int, int]) -> Iterator[Shape]:
    """The regions of an annotation; a region's label may stand in another result with the same number."""
    labels = {result.get("id"): names for result in work.results if (names := _names(result))}
    for result in work.results:
        kind = str(result.get("type"))
        if kind in ("labels", "choices", "relation", "textarea", "rating", "taxonomy"):
            continue
        names = _names(result) or labels.get(result.get("id"), [])
        if kind.removesuffix("labels") not in REGIONS:
            yield NoArea(shorten(names) or kind, kind)
            continue
        if len(names) != 1:
            raise InputError(f"a region has {len(names)} labels ({shorten(names)}), not one. Correct it.")
        if result.get("image_rotation"):
            raise InputError("the image was turned while it was labelled, which cannot be followed. Turn it back.")
        yield _region(kind.removesuffix("labels"), names[0], result["value"], size)


def _names(result: dict[str, Any]) -> list[str]:
    value = result.get("value")
    found = [names for key, names in value.items() if key.endswith("labels")] if isinstance(value, dict) else []
    return [str(name) for names in found if isinstance(names, list) for name in names]


def _region(kind: str, label: str, value: dict[str, Any], size: tuple[int, int]) -> Shape:
    """A region in pixels; Label Studio counts in per cent of the image."""
    height, width = size
    if kind == "brush":
        if value.get("format") != "rle":
            raise InputError(f"a brush of {label} is in the format {value.get('format')}, not rle. Export it anew.")
        if not isinstance(value["rle"], list):
            raise InputError(f"a brush of {label} is not a list of bytes. Export it anew.")
        return Window(
            label, 0, 0, size, brush_pixels, bytes(value["rle"])
        )  # a list of numbers takes eight times as much
    if kind == "bitmask":
        return Window(label, 0, 0, size, png_pixels, str(value["imageDataURL"]).partition("base64,")[2])
    if kind == "polygon":
        return Rings(label, (np.array(value["points"], dtype=np.float64) * (width / 100, height / 100),))
    x, y = float(value["x"]) * width / 100, float(value["y"]) * height / 100
    if kind == "keypoint":
        return point_shape(label, kind, (x, y))
    angle = float(value.get("rotation") or 0)
    if kind == "ellipse":
        radii = (float(value["radiusX"]) * width / 100, float(value["radiusY"]) * height / 100)
        return Rings(label, (ellipse_ring((x, y), radii, angle),))
    right, bottom = x + float(value["width"]) * width / 100, y + float(value["height"]) * height / 100
    return box_shape(label, (x, y, right, bottom), angle, about=(x, y))


def _choice(work: _Work, question: str | None) -> str | None:
    """The class that was chosen; None where the question was not answered."""
    asked = [result for result in work.results if result.get("type") == "choices"]
    names = list(dict.fromkeys(str(result.get("from_name")) for result in asked))
    if question is None and len(names) > 1:
        raise InputError(f"the task asks several questions ({shorten(names)}). Name one: --option question={names[0]}")
    chosen = [
        str(choice)
        for result in asked
        if question is None or result.get("from_name") == question
        for choice in result["value"]["choices"]
    ]
    if len(chosen) > 1:
        raise InputError(f"several choices are ticked ({shorten(chosen)}); an answer is one. Keep one of them.")
    return chosen[0] if chosen else None
