"""CVAT: "for images 1.1" and "for video 1.1", an XML file per job or task, or a folder of them.

A job's assignee is the rater. CVAT leaves the replicas of a consensus out of a task's export: export jobs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from annotruth.errors import InputError, shorten
from annotruth.io.contents import Contents
from annotruth.io.drawn import Answered, Drawn, files_at, parsing, rater_of_file
from annotruth.io.problems import Problem, Report, reporting
from annotruth.io.rasterise import MAX_PIXELS, ellipse_ring
from annotruth.io.shapes import NoArea, Rings, Shape, Window, box_shape, cvat_pixels, point_shape, read_points
from annotruth.io.sources import register
from annotruth.io.sources.cvat_tracks import FrameShape, Track, frames_of
from annotruth.io.sources.imports import ImportSource
from annotruth.io.xml_events import read_xml

AREAS = ("box", "polygon", "ellipse", "mask")
NO_AREAS = ("points", "polyline", "cuboid", "skeleton")
_OPTIONS = {"attribute": "take the value of this attribute for the class, where a shape or tag has it"}


class _Cvat(ImportSource):
    """What shapes and tags have in common."""

    identity = "the job's (or task's) assignee; the file's or folder's name where there is none"
    inputs = ("images", "duplicates")
    options: ClassVar[dict[str, str]] = _OPTIONS
    suffixes = (".xml",)
    wants_tags: ClassVar[bool]

    def matches(self, path: Path) -> bool:
        files = list(find_files(path))
        return bool(files) and self.wants_tags == all(_has_only_tags(file) for file in files)


@register
class CvatShapes(_Cvat):
    """<annotations><image><polygon/><mask/><box/><ellipse/></image></annotations>, or <track/>."""

    name = "CVAT export"
    key = "cvat"
    description = "CVAT's XML (for images or video 1.1): masks, polygons, boxes, ellipses, tracks"
    kind = "masks"
    wants_tags = False
    holds = ("image", "mask", "polygon", "box", "ellipse", "point")

    def read(self, path: Path, report: Report, **inputs: Any) -> Contents:
        attribute = inputs.pop("attribute", None)
        drawn = Drawn(path, report, **inputs)
        _report_empty(path, report)
        for file in find_files(path):
            reader = _Reader(file, attribute)
            with parsing(report, file):
                for image in reader.images():
                    _add_shapes(drawn, reader, image, report)
            for note in reader.notes:
                drawn.notes.append(note)
        return drawn.contents()


@register
class CvatTags(_Cvat):
    """<annotations><image><tag/></image></annotations>."""

    name = "CVAT export of tags"
    key = "cvat-tags"
    description = "CVAT's XML (for images 1.1) with tags alone: one class per image"
    kind = "labels"
    wants_tags = True
    holds = ("image", "class")

    def read(self, path: Path, report: Report, **inputs: Any) -> Contents:
        attribute = inputs.pop("attribute", None)
        answered = Answered(path, report, inputs.get("images"))
        _report_empty(path, report)
        for file in find_files(path):
            reader = _Reader(file, attribute)
            with parsing(report, file):
                for image in reader.images():
                    labels = list(dict.fromkeys(image.tags))
                    if len(labels) > 1:
                        message = f"the image has several tags ({shorten(labels)}); an answer is one."
                        report(Problem("fatal", file, image.name, image.rater, message, "Keep one of them."))
                    elif labels:
                        answered.add(image.name, image.rater, image.rater, labels[0])
        return answered.contents()


def find_files(path: Path) -> Iterator[Path]:
    """CVAT's files at a path: the file itself, or those in the folder."""
    return (file for file in files_at(path, "*.xml") if file.suffix.lower() == ".xml" and _is_cvat(file))


def _report_empty(path: Path, report: Report) -> None:
    """Report files that are XML by name alone: a download that failed."""
    for file in files_at(path, "*.xml") if path.is_dir() else []:
        with file.open("rb") as opened:
            head = opened.read(64)
            if b"<" not in head or len(head) < 16:
                report(Problem("fatal", file, None, None, "the file is empty, or not XML.", "Export it anew."))


def _is_cvat(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            head = opened.read(4096)
    except OSError:
        return False
    return b"<annotations>" in head and (b"<meta>" in head or b"<version>" in head or b"<image " in head)


def _has_only_tags(file: Path) -> bool:
    marks = [f"<{name} ".encode() for name in (*AREAS, *NO_AREAS, "track")]
    tags, tail = False, b""
    with file.open("rb") as opened:
        while chunk := opened.read(1 << 20):
            text = tail + chunk
            if any(mark in text for mark in marks):
                return False
            tags, tail = tags or b"<tag " in text, chunk[-16:]
    return tags


@dataclass
class _Image:
    """One <image> element, as far as it was read."""

    name: str
    size: tuple[int, int]
    rater: str = ""
    shapes: list[tuple[int, Shape]] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    trouble: str = ""


class _Reader:
    """Reads one file, image by image.

    Attributes
    ----------
    rater : the assignee, known once the images begin
    labels : declared in the file's head
    """

    def __init__(self, file: Path, attribute: str | None) -> None:
        self.file, self._attribute = file, attribute
        self.labels: list[str] = []
        self.notes: list[str] = []
        self._where: list[str] = []
        self._meta: dict[str, str] = {}
        self._image: _Image | None = None
        self._track: Track | None = None
        self._tracks: list[Track] = []
        self._open: tuple[str, dict[str, str]] | None = None
        self._values: dict[str, str] = {}
        self._done: list[_Image] = []
        self._tasks: dict[str, str] = {}
        self._task: dict[str, str] = {}
        self._jobs = 0

    @property
    def rater(self) -> str:
        for level in ("job", "task", "project"):
            name = self._meta.get(f"{level}/assignee/username")
            if name:
                return name
        return rater_of_file(self.file)

    def images(self) -> Iterator[_Image]:
        """Give every image, also those before the place where a file breaks off."""
        problem: InputError | None = None
        try:
            read_xml(self.file, self._begin, self._end)
        except InputError as error:
            problem = error
        if not any(key.endswith("assignee/username") for key in self._meta) and not any(self._tasks.values()):
            self.notes.append(f"{self.file.name} names no assignee; the rater is called {self.rater} after the file.")
        if self._jobs > 1:
            self.notes.append(
                f"{self.file.name} is the export of a task with {self._jobs} jobs; all is taken for {self.rater}'s. "
                "Export the jobs to keep who drew what."
            )
        for image in [*self._done, *(self._frames() if self._tracks else ())]:
            image.rater = image.rater or self.rater
            yield image
        if problem is not None:
            raise problem

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        self._where.append(name)
        if name == "image":
            called = attributes.get("name", f"image {len(self._done)}")
            self._image = _Image(called, (0, 0), self._tasks.get(attributes.get("task_id", ""), ""))
            with self._noting("image"):
                self._image.size = (_whole(attributes, "height"), _whole(attributes, "width"))
        elif name == "track":
            self._track = Track(attributes["label"])
        elif self._image is not None or self._track is not None:
            if name in (*AREAS, *NO_AREAS, "tag") and "skeleton" not in self._where[:-1]:  # whose points are its own
                self._open, self._values = (name, attributes), {}
            elif name == "attribute":
                self._values[attributes.get("name", "")] = ""
                self._attribute_name = attributes.get("name", "")

    def _end(self, name: str, text: str) -> None:
        self._where.pop()
        if name == "image" and self._image is not None:
            self._done.append(self._image)
            self._image = None
        elif name == "track" and self._track is not None:
            self._tracks.append(self._track)
            self._track = None
        elif name == "attribute" and self._open is not None:
            self._values[self._attribute_name] = text
        elif self._open is not None and name == self._open[0]:
            with self._noting(name):
                self._close(*self._open)
            self._open = None
        elif "meta" in self._where:
            self._keep_meta(name, text)

    @contextmanager
    def _noting(self, name: str) -> Iterator[None]:
        """Note what is wrong with an element as its image's trouble, so that others are read; a track has no image."""
        try:
            yield
        except (KeyError, ValueError, OverflowError) as error:  # InputError is a ValueError
            what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            trouble = what if isinstance(error, InputError) else f"a <{name}> cannot be read ({what}). Correct it."
            if self._image is None:
                raise InputError(f"{self.file}: in a track, {trouble}") from None
            self._image.trouble = self._image.trouble or trouble

    def _keep_meta(self, name: str, text: str) -> None:
        level = next((each for each in self._where[2:] if each in ("job", "task", "project")), "")
        inside = self._where[self._where.index("meta") + 1 + bool(level) :]
        if inside == ["labels", "label"] and name == "name":
            self.labels.append(text)
        elif inside == ["tasks", "task"] and name == "id":  # of a project, whose images tell their task
            self._task["id"] = text
        elif inside == ["tasks", "task", "assignee"] and name == "username":
            self._task["username"] = text
        elif level == "task" and inside == ["segments"] and name == "segment":
            self._jobs += 1
        elif inside == ["tasks"] and name == "task":
            self._tasks[self._task.get("id", "")] = self._task.get("username", "")
            self._task = {}
        else:
            self._meta.setdefault("/".join([*([level] if level else []), *inside, name]), text)

    def _close(self, name: str, attributes: dict[str, str]) -> None:
        """Keep a shape or tag that was read as a whole."""
        if self._track is not None:
            label = self._chosen(self._track.label)
            shape = _shape(name, label, attributes)
            self._track.shapes.append(FrameShape.read(attributes, shape, _order(attributes)))
            return
        assert self._image is not None
        label = self._chosen(attributes["label"])
        if name == "tag":
            self._image.tags.append(label)
        else:
            self._image.shapes.append((_order(attributes), _shape(name, label, attributes)))

    def _chosen(self, label: str) -> str:
        return self._values.get(self._attribute, label) if self._attribute is not None else label

    def check_labels(self, labels: list[str]) -> None:
        """Refuse a label that the file's head does not declare."""
        strangers = sorted(set(labels) - set(self.labels))
        if self.labels and self._attribute is None and strangers:
            known = shorten(self.labels, 10)
            raise InputError(f"the label {strangers[0]} is not among the file's labels ({known}). Add or correct it.")

    def _frames(self) -> Iterator[_Image]:
        """The frames of a video, each with the shapes of the tracks that pass it."""
        levels = ("job", "task")
        size = tuple(
            next((int(self._meta[key]) for key in (f"{level}original_size/{side}" for level in ("", "job/", "task/"))
                  if key in self._meta), 0)
            for side in ("height", "width")
        )  # fmt: skip
        if 0 in size:
            raise InputError(f"{self.file}: a video's <original_size> is missing. Export the file anew.")
        first, last = (
            next(
                (int(self._meta[f"{level}/{end}_frame"]) for level in levels if self._meta.get(f"{level}/{end}_frame")),
                None,
            )
            for end in ("start", "stop")
        )
        for frame, shapes in frames_of(self._tracks, first, last):
            yield _Image(f"frame_{frame:06d}.png", (size[0], size[1]), shapes=shapes)


def _add_shapes(drawn: Drawn, reader: _Reader, image: _Image, report: Report) -> None:
    """Add one image's shapes, or report what is wrong with it."""
    if reader.labels and reader._attribute is None:
        drawn.declare(reader.labels)
    rater = image.rater
    with reporting(report, reader.file, image.name, rater):
        if image.trouble:
            raise InputError(image.trouble)
        reader.check_labels([shape.label for _, shape in image.shapes])
        ordered = [shape for _, shape in sorted(image.shapes, key=lambda pair: pair[0])]
        drawn.add(reader.file, image.name, image.size, rater, rater, ordered)
    if image.tags:
        message = f"the image's tags ({shorten(image.tags)}) are left out, as there are shapes."
        report(Problem("warning", reader.file, image.name, rater, message, "--from cvat-tags reads tags instead."))


def _shape(name: str, label: str, attributes: dict[str, str]) -> Shape:
    if name in NO_AREAS:
        return point_shape(label, name, read_points(attributes["points"])) if name == "points" else NoArea(label, name)
    if name == "polygon":
        return Rings(label, (attributes["points"],))
    if name == "mask":
        left, top, width, height = (_whole(attributes, side) for side in ("left", "top", "width", "height"))
        if height * width > MAX_PIXELS:
            raise InputError(f"a mask of {label} has {height}×{width} pixels, which cannot be. Export it anew.")
        return Window(label, left, top, (height, width), cvat_pixels, attributes["rle"])
    angle = float(attributes.get("rotation", 0))
    if name == "ellipse":
        cx, cy, rx, ry = (float(attributes[each]) for each in ("cx", "cy", "rx", "ry"))
        return Rings(label, (ellipse_ring((cx, cy), (rx, ry), angle),))
    x1, y1, x2, y2 = (float(attributes[each]) for each in ("xtl", "ytl", "xbr", "ybr"))
    return box_shape(label, (x1, y1, x2, y2), angle)


def _order(attributes: dict[str, str]) -> int:
    return int(attributes.get("z_order", 0))


def _whole(attributes: dict[str, str], name: str) -> int:
    return int(float(attributes[name]))
