"""Collect what raters drew, image by image, as labelling tools export it; tell apart whom and what they name alike."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import filter as filter_names
from fnmatch import fnmatch
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import pandas as pd

from annotruth.errors import InputError, shorten
from annotruth.io.contents import Contents, Item, Mask, name_items, name_raters, warn_of_namesakes
from annotruth.io.files import image_header
from annotruth.io.image_search import find_below, find_image, folders_of_images, images_below, put_images
from annotruth.io.names import refuse_unwritable
from annotruth.io.problems import Problem, Report, place, reporting
from annotruth.io.rasterise import MAX_PIXELS
from annotruth.io.reading import refuse_irregular
from annotruth.io.shapes import NoArea, Shape, kinds_without_area, paint_shapes
from annotruth.validation import MAX_MASK_CLASSES

BACKGROUND = "background"
TRUTH: Any = object()
"""Who drew what a tool marks as known to be right, in place of a rater."""
_LEFT_BEHIND = (".", "__MACOSX")
MANY = 20
"""Files of a folder that are looked at to tell what it is."""


@dataclass
class _Drawing:
    file: Path
    shapes: Sequence[Shape]


@dataclass
class _Picture:
    size: tuple[int, int]
    drawings: dict[Any, _Drawing] = field(default_factory=dict)


class Drawn:
    """What raters drew, to be added image by image and rater by rater, and given as :class:`Contents`.

    Parameters
    ----------
    path : the source: images are looked for in it, or beside it, unless ``images`` says where
    duplicates : a rater's drawing that another one of the same image replaces is a problem ("error"), or not
    """

    def __init__(self, path: Path, report: Report, images: Path | None = None, duplicates: str = "error") -> None:
        self._path, self._report, self._images, self._duplicates = path, report, images, duplicates
        self._pictures: dict[str, _Picture] = {}
        self._raters: dict[Any, str] = {}
        self._labels: list[str] = []
        self._aliases: dict[str, str] = {}
        self._origins: dict[str, str] = {}
        self.notes: list[str] = []
        self.rater_info: dict[Any, dict[str, Any]] = {}

    def call(self, image: str, alias: str, origin: str) -> None:
        """Say by which other path an image may be found, and what the source itself calls it."""
        self._aliases[image], self._origins[image] = alias, origin

    def size_of(self, image: str) -> tuple[int, int]:
        """An image's (height, width), from its file: for tools that do not write it down."""
        names = [image, self._aliases.get(image, image)]
        file = find_image(names, self._look_in) or find_below(names, self._below)
        if file is None:
            raise InputError(
                f"the file does not tell the size of the image {image}, and the image was not found. "
                "Name the folder of images, --images."
            )
        height, width = image_header(file, 2, place(file, image)).shape[1:]
        return height, width

    @property
    def _look_in(self) -> list[Path]:
        return folders_of_images(self._path, self._images)

    @cached_property
    def _below(self) -> dict[str, list[Path]]:
        return images_below(self._path, self._look_in)

    def declare(self, labels: Sequence[str]) -> None:
        """Name classes in the order in which they shall be numbered; others follow as they are met."""
        for label in dict.fromkeys(labels):
            if label not in self._labels:
                self._labels.append(refuse_unwritable(label, "class"))

    def add(
        self, file: Path, image: str, size: tuple[int, int], rater: Any, rater_name: str, shapes: Sequence[Shape]
    ) -> None:
        """Add what one rater drew on one image; no shape means that the rater saw nothing there.

        Parameters
        ----------
        file : where it stands, for messages
        image : the image's path, as the source names it
        size : (height, width)
        rater, rater_name : what tells the rater from others, and what the source shows; ``TRUTH`` where it is the known
            truth and nobody's
        shapes : the last on top; masks are made without those that have no area
        """
        where = place(file, image, rater_name)
        for label in {shape.label for shape in shapes}:
            refuse_unwritable(label, "class")
        if min(size) < 1 or size[0] * size[1] > MAX_PIXELS:
            raise InputError(f"{where}: an image of {size[0]}×{size[1]} pixels cannot be. Correct height and width.")
        picture = self._pictures.setdefault(image, _Picture(size))
        if picture.size != size:
            here, there = (f"{height}×{width}" for height, width in (size, picture.size))
            raise InputError(f"{where}: the image has {here} pixels here, {there} elsewhere. Correct one of the two.")
        if rater is not TRUTH:
            self._raters.setdefault(rater, rater_name)
        if rater in picture.drawings:
            message = "the rater labelled this image twice; the later one counts."
            severity = "fatal" if self._duplicates == "error" else "warning"
            advice = "Remove one of the two, or accept the later: --duplicates keep-last."
            self._report(Problem(severity, file, image, rater_name, message, advice))  # type: ignore[arg-type]
        bare = [shape for shape in shapes if isinstance(shape, NoArea)]
        if bare and len(bare) < len(shapes):
            message = f"{len(bare)} shapes have no area ({shorten(kinds_without_area(bare))})."
            advice = "They are in no mask; the rest of the drawing is kept."
            self._report(Problem("warning", file, image, rater_name, message, advice))
        self.declare([shape.label for shape in shapes if not isinstance(shape, NoArea)])
        picture.drawings[rater] = _Drawing(file, shapes)

    def contents(self) -> Contents:
        """Give all that was added, with the images that were found."""
        classes = tuple(sorted(self._labels, key=lambda label: label.casefold() != BACKGROUND))
        if not classes or classes[0].casefold() != BACKGROUND:
            classes = (BACKGROUND, *classes)
        if len(classes) > MAX_MASK_CLASSES:
            raise InputError(f"{self._path}: {len(classes)} classes; masks hold at most {MAX_MASK_CLASSES}.")
        names, raters = name_items(list(self._pictures)), name_raters(self._raters)
        warn_of_namesakes(self._path, self._raters, raters, self._report)
        items = []
        for path, picture in self._pictures.items():
            masks = {
                rater: Mask(drawing.file, partial(paint_shapes, drawing.shapes, picture.size, classes))
                for rater, drawing in picture.drawings.items()
            }
            truth = masks.pop(TRUTH, None)
            own = {raters[rater]: mask for rater, mask in masks.items()}
            items.append(Item(names[path], picture.size, own, truth=truth, origin=self._origins.get(path, path)))
        paths = [(path, self._aliases.get(path, path)) for path in self._pictures]
        items = put_images(items, paths, self._path, self._look_in, self._report, self.notes)
        info = {raters[rater]: known for rater, known in self.rater_info.items() if rater in raters}
        return Contents(classes, items, rater_info=info, notes=self.notes)


class Answered:
    """What raters answered, one class per image, to be added answer by answer, and given as :class:`Contents`."""

    def __init__(self, path: Path, report: Report, images: Path | None = None) -> None:
        self._path, self._report, self._images = path, report, images
        self._rows: list[dict[str, Any]] = []
        self._raters: dict[Any, str] = {}
        self._aliases: dict[str, str] = {}
        self._origins: dict[str, str] = {}
        self._truth: dict[str, str] = {}
        self.notes: list[str] = []
        self.rater_info: dict[Any, dict[str, Any]] = {}

    def call(self, image: str, alias: str, origin: str) -> None:
        """Say by which other path an image may be found, and what the source itself calls it."""
        self._aliases[image], self._origins[image] = alias, origin

    def add(self, image: str, rater: Any, rater_name: str, label: str, **more: Any) -> None:
        """Add one answer; ``more`` is kept in columns of its own. A rater that is ``TRUTH`` gives the known truth."""
        refuse_unwritable(label, "class")
        if rater is TRUTH:
            if self._truth.setdefault(image, label) != label:
                raise InputError(f"the known truth is told twice, {self._truth[image]} and {label}. Remove one.")
            return
        self._raters.setdefault(rater, rater_name)
        self._rows.append({"item": image, "rater": rater, "label": label, **more})

    def contents(self) -> Contents:
        """Give all answers, with the images that were found."""
        paths = list(dict.fromkeys(row["item"] for row in self._rows))
        names, raters = name_items(paths), name_raters(self._raters)
        warn_of_namesakes(self._path, self._raters, raters, self._report)
        items = put_images(
            [Item(names[path], (), origin=self._origins.get(path, path)) for path in paths],
            [(path, self._aliases.get(path, path)) for path in paths], self._path,
            folders_of_images(self._path, self._images), self._report, self.notes,
        )  # fmt: skip
        kept = {item.name for item in items}
        rows = [{**row, "item": names[row["item"]], "rater": raters[row["rater"]]} for row in self._rows]
        kept_rows = [row for row in rows if row["item"] in kept]
        table = pd.DataFrame(kept_rows if kept_rows else {"item": [], "rater": [], "label": []})
        info = {raters[rater]: known for rater, known in self.rater_info.items() if rater in raters}
        unanswered = [image for image in self._truth if image not in names]
        if unanswered:
            self.notes.append(f"Known truth of {len(unanswered)} items that nobody answered is left out.")
        truth = {names[image]: label for image, label in self._truth.items() if names.get(image) in kept}
        return Contents(None, items, table, truth, rater_info=info, notes=self.notes)


@contextmanager
def parsing(report: Report, file: Path, case: str | None = None, rater: str | None = None) -> Iterator[None]:
    """Report what is wrong inside, also what a reader meets in a file that is not as its tool writes it."""
    with reporting(report, file, case, rater):
        try:
            yield
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
            if isinstance(error, InputError):
                raise
            what = f"{error} is missing" if isinstance(error, KeyError) else " ".join(str(error).split())
            raise InputError(f"this is not as the tool writes it ({what}). Export it anew, or correct it.") from error


EVERYBODYS = ("annotations", "instances_default", "person_keypoints_default", "result", "export", "via_project",
              "via_region_data", "_annotations.coco", "train", "valid", "test")  # fmt: skip
"""Names that tools give to everybody's file or folder."""


def rater_of_file(file: Path) -> str:
    """Name a rater after a file, or after its folder where the file's name is the one that the tool gives to all.

    Examples
    --------
    >>> rater_of_file(Path("jobs/ann/annotations/instances_default.json")), rater_of_file(Path("jobs/bob.json"))
    ('ann', 'bob')
    """
    parts = [file.stem, *reversed(file.parts[:-1])]
    return next((part for part in parts if part and part.lower() not in EVERYBODYS), file.stem)


def files_at(path: Path, pattern: str) -> list[Path]:
    """The file itself, or those of a pattern in the folder and below; not what operating systems leave behind.

    Examples
    --------
    >>> files_at(Path("no such folder"), "*.json")
    []
    """
    if not path.is_dir():
        return [path] if path.is_file() else []
    parent, _, name = pattern.rpartition("/")
    found: list[Path] = []
    for home, folders, names in os.walk(path):  # of thousands of files, much quicker than rglob
        folders[:] = [each for each in folders if not each.startswith(_LEFT_BEHIND)]
        if not parent or fnmatch(os.path.basename(home), parent):
            found += (Path(home, each) for each in filter_names(names, name) if not each.startswith(_LEFT_BEHIND))
    return sorted((file for file in found if file.is_file()), key=lambda file: file.parts)


def json_files(path: Path) -> list[Path]:
    """The JSON file itself, or those in the folder."""
    files = files_at(path, "*.json")
    return [file for file in files if file.suffix.lower() in (".json", ".geojson")]


@lru_cache(maxsize=1)
def _peeked(file: Path, changed: int, size: int) -> Any:
    return read_json(file)


def peek_json(file: Path) -> Any:
    """Read a JSON file to see what it is; None where it cannot be read. The last one is kept, not to be changed."""
    try:
        about = file.stat()
        return _peeked(file, about.st_mtime_ns, about.st_size)
    except (OSError, InputError):
        return None


def own_json(path: Path, report: Report, is_own: Callable[[Any], bool]) -> Iterator[tuple[Path, Any]]:
    """The JSON files at a path that a source knows as its own, with their content, which is not to be changed.

    Those that cannot be read are reported, as nobody knows whose they are.
    """
    for file in json_files(path):
        content = None
        with reporting(report, file):
            about = file.stat()
            content = _peeked(file, about.st_mtime_ns, about.st_size)
        if content is not None and is_own(content):
            yield file, content
    _peeked.cache_clear()


def read_json(file: Path) -> Any:
    """Read a JSON file; what is wrong with it is said in a sentence."""
    try:
        refuse_irregular(file)
        return json.loads(file.read_text(encoding="utf-8-sig"))
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    except json.JSONDecodeError as error:
        raise InputError(
            f"{file}: line {error.lineno}, column {error.colno} is not JSON: {error.msg}. Export the file anew."
        ) from None
    except RecursionError:
        raise InputError(f"{file}: the JSON is nested too deeply to be read. Export the file anew.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read: {error}. Save it as UTF-8 text.") from error
    except ValueError:  # a number of thousands of digits
        raise InputError(f"{file}: the JSON holds a number that is too long. Export the file anew.") from None
