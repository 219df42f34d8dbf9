"""LIDC-IDRI: XML files in which up to four radiologists outlined lung nodules, slice by slice.

The files tell neither who read nor how large a slice is: readers are numbered scan by scan, and a slice of computed
tomography has 512×512 pixels unless an image says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from annotruth.errors import InputError
from annotruth.io.contents import Contents, Mask, safe_name
from annotruth.io.files import suffix_of
from annotruth.io.layouts import Case, find_named, make_items, peek_names, stem
from annotruth.io.problems import Problem, Report, reporting
from annotruth.io.rasterise import polygon_pixels
from annotruth.io.sources import register
from annotruth.io.sources.imports import ImportSource
from annotruth.io.xml_events import read_xml

SIZE = (512, 512)
MAX_COORDINATE = 4096
"""Far more than a slice has pixels along a side."""
MIN_POINTS = 3
"""Points of an outline; nodules under 3 mm are marked by one."""


@dataclass(frozen=True)
class Outline:
    """A ring (points, 2) around a nodule on a slice; or around what is none of it."""

    points: tuple[tuple[float, float], ...]
    inclusion: bool


@dataclass
class Scan:
    """What stands in an XML file: by reader, by slice, the outlines."""

    series: str = ""
    readers: list[dict[str, list[Outline]]] = field(default_factory=list)
    places: dict[str, float] = field(default_factory=dict)
    points: int = 0


@register
class Lidc(ImportSource):
    """LidcReadMessage with up to four readingSession."""

    name = "LIDC file"
    key = "lidc"
    description = "LIDC-IDRI's XML files of nodule outlines: one, or a folder of them"
    kind = "masks"
    holds = ("image", "polygon")
    identity = "the reading session's number in its file: not the same person from scan to scan"
    inputs = ("images",)

    def matches(self, path: Path) -> bool:
        names = [name for name in peek_names(path) if name.lower().endswith(".xml")] if path.is_dir() else []
        files = [path / name for name in names[:3]] if path.is_dir() else _files(path)
        return any(b"<LidcReadMessage" in _head(file) for file in files)

    def read(self, path: Path, report: Report, images: Path | None = None, **_: Any) -> Contents:
        pictures = {} if images is None else {stem(file): file for file in images.rglob("*") if suffix_of(file)}
        cases: list[Case] = []
        points = readers = 0
        for file in _files(path):
            if file.stat().st_size and b"<LidcReadMessage" not in _head(file):
                continue
            with reporting(report, file):
                scan = read_scan(file)
                points += scan.points
                readers = max(readers, len(scan.readers))
                cases += _cases(file, scan, pictures)
        if not cases:
            raise InputError(f"{path}: no reader outlined a nodule of 3 mm or more.")
        if pictures:
            bare = [case.name for case in cases if not case.images]
            cases = [case for case in cases if case.images]
            if bare:
                message = f"{len(bare)} slices are left out: there is no image named after their SOP instance UID."
                report(Problem("warning", path, None, None, message))
        notes = [
            "A slice that any reader outlined a nodule on is a case; readers who did not, saw none there.",
            "Readers are numbered scan by scan: rater_1 is not the same person throughout.",
        ]
        if points:
            notes.append(f"{points} nodules under 3 mm, which are marked by a point, are left out.")
        if not pictures:
            notes.append(
                f"There are no images; slices are taken to have {SIZE[0]}×{SIZE[1]} pixels. --images names a folder of "
                "pictures called after the slices' SOP instance UID."
            )
        return Contents(("background", "nodule"), make_items(cases, 2, report), notes=notes)


def read_scan(file: Path) -> Scan:
    """Read one XML file."""
    scan = Scan()
    roi: dict[str, Any] = {}
    point: dict[str, float] = {}
    within: list[str] = []

    def start(name: str, _: dict[str, str]) -> None:
        within.append(name)
        if name == "readingSession":
            scan.readers.append({})
        elif name == "roi":
            roi.clear()
            roi["points"] = []

    def end(name: str, text: str) -> None:
        within.pop()
        if name == "SeriesInstanceUid":
            scan.series = text
        elif "unblindedReadNodule" not in within:
            return
        elif name in ("xCoord", "yCoord"):
            point[name] = _number(file, text, MAX_COORDINATE)
        elif name == "edgeMap":
            roi["points"].append((point["xCoord"], point["yCoord"]))
        elif name in ("imageSOP_UID", "inclusion", "imageZposition"):
            roi[name] = text
        elif name == "roi":
            _keep(scan, roi, file)

    try:
        read_xml(file, start, end)
    except (KeyError, IndexError) as error:
        raise InputError(f"{file}: an outline lacks {error}. Download the file anew.") from None
    if not scan.readers:
        raise InputError(f"{file}: there is no readingSession. Download the file anew.")
    return scan


def _keep(scan: Scan, roi: dict[str, Any], file: Path) -> None:
    if len(roi["points"]) < MIN_POINTS:
        scan.points += 1
        return
    uid = roi["imageSOP_UID"]
    scan.places[uid] = _number(file, roi.get("imageZposition", "0"))
    outline = Outline(tuple(roi["points"]), roi.get("inclusion", "TRUE").upper() != "FALSE")
    scan.readers[-1].setdefault(uid, []).append(outline)


def _cases(file: Path, scan: Scan, pictures: dict[str, Path]) -> Iterator[Case]:
    """A case for each slice with an outline, from one end of the scan to the other."""
    series = safe_name(scan.series or file.stem)
    for uid, place in sorted(scan.places.items(), key=lambda pair: (pair[1], pair[0])):
        image = pictures.get(uid)
        case = Case(f"{series}_{place:g}", () if image is None else (image,), group=series)
        case.shape = SIZE
        for number, slices in enumerate(scan.readers, 1):
            case.masks[f"rater_{number}"] = Mask(file, partial(fill_outlines, tuple(slices.get(uid, ())), SIZE))
        yield case


def fill_outlines(outlines: tuple[Outline, ...], size: tuple[int, int]) -> np.ndarray:
    """Fill outlines (height, width) uint8. They run along the first pixels outside a nodule, which are none of it.

    Examples
    --------
    >>> ring = Outline(((1, 1), (5, 1), (5, 5), (1, 5)), inclusion=True)
    >>> int(fill_outlines((ring,), (8, 8)).sum())
    9
    """
    mask = np.zeros(size, dtype=np.uint8)
    for outline in sorted(outlines, key=lambda each: not each.inclusion):
        points = np.array(outline.points, dtype=np.float64)
        if (points.max(axis=0) < 0).any() or (points.min(axis=0) >= size[::-1]).any():
            raise InputError("an outline lies outside the slice. Download the file anew.")
        window, inside = polygon_pixels([points + 0.5], size)  # a point names a pixel, whose centre lies half on
        filled = np.zeros(size, dtype=bool)
        filled[window] = inside
        columns, rows = points.astype(int).T
        kept = (rows >= 0) & (rows < size[0]) & (columns >= 0) & (columns < size[1])
        filled[rows[kept], columns[kept]] = False
        _cut_edges(filled, points)
        mask[filled] = int(outline.inclusion)
    return mask


def _cut_edges(filled: np.ndarray, points: np.ndarray) -> None:
    """Take the pixels between two points of an outline off, where these are not neighbours."""
    for here, there in zip(points, np.roll(points, -1, axis=0)):
        steps = int(np.abs(there - here).max())
        if steps > 1:
            between = here + (there - here) * np.arange(*_seen(here, there, steps, filled.shape))[:, None] / steps
            columns, rows = np.rint(between).astype(int).T
            kept = (rows >= 0) & (rows < filled.shape[0]) & (columns >= 0) & (columns < filled.shape[1])
            filled[rows[kept], columns[kept]] = False


def _seen(here: np.ndarray, there: np.ndarray, steps: int, size: tuple[int, ...]) -> tuple[int, int]:
    """Of the steps between two points, the first and last (not included) that may lie in the slice, (height, width)."""
    first, last = 0.0, 1.0
    for start, way, length in zip(here, there - here, size[::-1]):
        if way:
            ends = sorted(((-1 - start) / way, (length - start) / way))
            first, last = max(first, ends[0]), min(last, ends[1])
        elif not -1 <= start <= length:
            return 1, 1
    return max(1, int(first * steps)), min(steps, int(last * steps) + 2)


def _number(file: Path, text: str, largest: float = 1e6) -> float:
    try:
        number = float(text)
    except ValueError:
        number = np.nan
    if not abs(number) < largest:
        raise InputError(f"{file}: {text[:20]!r} is no coordinate. Download the file anew.")
    return number


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if path.suffix.lower() == ".xml" else []
    return list(find_named(path, r".+\.xml")) if path.is_dir() else []


def _head(file: Path) -> bytes:
    try:
        if not file.is_file():  # a pipe, say, which would be waited for
            return b""
        with file.open("rb") as opened:
            return opened.read(4096)
    except OSError:
        return b""
