"""Objects from what labelling tools export, shape by shape, and fused ones as tables and as COCO."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import ndimage

from annotruth.data.objects import BOX, Objects
from annotruth.errors import InputError
from annotruth.io.archives import open_archive
from annotruth.io.case_files import by_number, scan
from annotruth.io.contents import Contents, Mask
from annotruth.io.drawn import BACKGROUND
from annotruth.io.files import read_mask
from annotruth.io.masks.tally import distinct
from annotruth.io.problems import Problem, Report, place, refuse, reporting
from annotruth.io.shapes import NoArea, Shape, paint_shapes
from annotruth.io.sources import accept_inputs, find_source
from annotruth.io.sources.imports import ImportSource
from annotruth.io.writing import atomic


def load_objects(path: str | Path, *, source: str | None = None, report: Report = refuse, **inputs: Any) -> Objects:
    """Load what raters drew as objects, one for each shape, instead of masks.

    Parameters
    ----------
    path : the export of a labelling tool that keeps shapes (CVAT, COCO, Label Studio, Labelme, VIA, QuPath,
        Supervisely); a table (.csv) with the columns item, rater, label and x1, y1, x2, y2 or x, y; or a case folder
        whose masks give every object a number of its own, 0 being none
    source : key of the kind of data set that it is, where that is not to be found by looking at it
    report : takes what is left out because something is wrong; by default the first such thing is raised
    inputs : as :func:`annotruth.load` takes them

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder) / "boxes.csv"
    ...     _ = table.write_text("item,rater,label,x1,y1,x2,y2\\na,ann,cell,1,1,5,5\\na,bob,cell,1,2,5,5\\n")
    ...     load_objects(table)
    Objects(2 objects: 1 items, 2 raters, 1 classes)
    """
    path = Path(path)
    if path.suffix.lower() == ".csv" and source is None:
        return _from_csv(path)
    found_path = open_archive(path)
    found = find_source(found_path, source)
    if found.key == "case-folder":
        return _from_instances(found_path, report)
    if not isinstance(found, ImportSource) or found.kind != "masks":
        raise InputError(
            f"{path}: a {found.name} holds no shapes. Name a labelling tool's export, or a table of boxes."
        )
    contents = found.read(found_path, report, **accept_inputs(found, found_path, inputs))
    return _objects(path, contents, report)


def write_objects(path: str | Path, candidates: pd.DataFrame) -> Path:
    """Write fused objects as a table (.csv), or as COCO's instances with scores (.json).

    Parameters
    ----------
    candidates : ``truth_`` or ``candidates_`` of :class:`annotruth.fusion.ObjectConsensus`
    """
    path = Path(path)
    with atomic(path) as temporary:
        if path.suffix.lower() == ".json":
            temporary.write_text(json.dumps(_coco(candidates), indent=1) + "\n", encoding="utf-8")
        elif path.suffix.lower() == ".csv":
            candidates.to_csv(temporary, index=False)
        else:
            raise InputError(f"{path}: objects are written as .csv or .json (COCO).")
    return path


def _from_csv(path: Path) -> Objects:
    try:
        return Objects.from_table(pd.read_csv(path, dtype={"item": str, "rater": str, "label": str}))
    except (OSError, ValueError, pd.errors.ParserError) as error:
        raise InputError(f"{path}: {error}") from None


def _from_instances(path: Path, report: Report) -> Objects:
    """Objects of masks (height, width) in which each has a number of its own; all are of one class."""
    layout = scan(path, report)
    items, raters = tuple(layout.cases), tuple(sorted(layout.raters, key=by_number))
    rows: list[tuple[int, int, int]] = []
    boxes: list[Sequence[float]] = []
    areas: list[np.ndarray | None] = []
    labelled = np.zeros((len(items), len(raters)), dtype=bool)
    for number, item in enumerate(items):
        for place_of, rater in enumerate(raters):
            file = layout.raters[rater].get(item)
            if file is None:
                continue
            with reporting(report, file, item, rater):
                mask = read_mask(file, place(file, item, rater))
                if mask.ndim != 2:
                    raise InputError(
                        f"{place(file, item, rater)}: objects lie in planes, this mask has {mask.ndim} axes."
                    )
                labelled[number, place_of] = True
                for window, area in _instances(mask):
                    rows.append((number, place_of, 0))
                    boxes.append((window[1].start, window[0].start, window[1].stop, window[0].stop))
                    areas.append(area)
    item_of, rater_of, label_of = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    corners = np.array(boxes, dtype=np.float64).reshape(-1, 4)
    return Objects(items, raters, ("object",), item_of, rater_of, label_of, corners, labelled, tuple(areas))


def _instances(mask: np.ndarray) -> Iterator[tuple[tuple[slice, slice], np.ndarray]]:
    """Window and pixels of every number in a mask (height, width) but 0."""
    values, places = distinct(mask)
    for number, window in enumerate(ndimage.find_objects(places + 1)):
        if window is not None and values[number] != 0:
            yield window, places[window] == number


def _objects(path: Path, contents: Contents, report: Report) -> Objects:
    """Objects of contents whose masks are shapes."""
    items, raters = tuple(item.name for item in contents.items), contents.raters
    classes = tuple(contents.classes or ())[1:]  # without the background
    of_points = [
        shape.label
        for item in contents.items
        for mask in item.masks.values()
        for shape in _shapes(mask) or ()
        if isinstance(shape, NoArea) and shape.points
    ]
    classes = tuple(dict.fromkeys([*classes, *(name for name in of_points if name.casefold() != BACKGROUND)]))
    rows: list[tuple[int, int, int]] = []
    boxes: list[Sequence[float]] = []
    areas: list[np.ndarray | None] = []
    labelled = np.zeros((len(items), len(raters)), dtype=bool)
    for number, item in enumerate(contents.items):
        for rater, mask in item.masks.items():
            shapes = _shapes(mask)
            if shapes is None:
                raise InputError(f"{path}: masks are pixels here, not shapes; nothing tells one object from another.")
            labelled[number, raters.index(rater)] = True
            for shape in shapes:
                if isinstance(shape, NoArea):
                    found = shape.points if shape.label in classes else ()
                    rows += [(number, raters.index(rater), classes.index(shape.label)) for _ in found]
                    boxes += [(x, y, x, y) for x, y in found]
                    areas += [None for _ in found]
                    if not shape.points:
                        message = f"a {shape.kind} is no object here."
                        report(Problem("warning", mask.file, item.name, rater, message, "It is left out."))
                    continue
                with reporting(report, mask.file, item.name, rater):
                    try:
                        box, area = crop(shape, (item.shape[0], item.shape[1]))
                    except InputError as error:
                        raise InputError(f"{place(mask.file, item.name, rater)}: {error}") from None
                    if shape.label not in classes:
                        continue  # a shape of the background takes away, and is no object
                    rows.append((number, raters.index(rater), classes.index(shape.label)))
                    boxes.append(box)
                    areas.append(area)
    numbers = np.array(rows, dtype=np.int64).reshape(-1, 3)
    corners = np.array(boxes, dtype=np.float64).reshape(-1, 4)
    item_of, rater_of, label_of = numbers.T
    sizes = tuple((item.shape[0], item.shape[1]) for item in contents.items)
    origins = tuple(item.origin or item.name for item in contents.items)
    return Objects(items, raters, classes, item_of, rater_of, label_of, corners, labelled, tuple(areas), sizes, origins)


def crop(shape: Shape, size: tuple[int, int]) -> tuple[tuple[int, int, int, int], np.ndarray]:
    """A shape's box (x1, y1, x2, y2) and its pixels in it, bool; size is (height, width) of the image.

    Examples
    --------
    >>> from annotruth.io.shapes import Rings
    >>> box, area = crop(Rings("cell", (np.array([[1, 1], [4, 1], [4, 3], [1, 3]]),)), (5, 6))
    >>> box, area.sum()
    ((1, 1, 4, 3), np.int64(6))
    """
    mask = np.zeros(size, dtype=np.uint8)
    shape.paint(mask, 1)
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not len(rows):
        raise InputError(f"a shape of {shape.label} covers no pixel. Correct or remove it.")
    top, bottom, left, right = int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1
    return (left, top, right, bottom), mask[top:bottom, left:right].astype(bool)


def _shapes(mask: Mask) -> Sequence[Shape] | None:
    """The shapes that a mask would be painted of."""
    read = mask.read
    return read.args[0] if isinstance(read, partial) and read.func is paint_shapes else None


def _coco(candidates: pd.DataFrame) -> dict[str, Any]:
    items, labels = (list(dict.fromkeys(candidates[name])) for name in ("item", "label"))
    annotations = []
    for number, row in enumerate(candidates.to_dict("records"), 1):
        x1, y1, x2, y2 = (float(row[name]) for name in BOX)
        annotations.append(
            {
                "id": number, "image_id": items.index(row["item"]) + 1, "category_id": labels.index(row["label"]) + 1,
                "bbox": [x1, y1, x2 - x1, y2 - y1], "area": (x2 - x1) * (y2 - y1), "iscrowd": 0,
                "score": float(row["probability"]),
            }
        )  # fmt: skip
    return {
        "images": [{"id": number, "file_name": str(item)} for number, item in enumerate(items, 1)],
        "categories": [{"id": number, "name": str(label)} for number, label in enumerate(labels, 1)],
        "annotations": annotations,
    }
