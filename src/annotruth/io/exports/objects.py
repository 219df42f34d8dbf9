"""Fused objects for labelling tools, one by one: CVAT's annotations.xml, and Label Studio's pre-annotations.

An object whose pixels are known is a polygon around them; with holes or in parts it is a mask (CVAT) or a brush (Label
Studio). Otherwise it is a box, or a point.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np
import pandas as pd

from annotruth.data.objects import BOX, Objects
from annotruth.errors import InputError
from annotruth.io.runs import label_studio_code, roll_counts
from annotruth.io.writing import atomic

Area = tuple[np.ndarray, tuple[int, int]]
"""Pixels of an object, bool (height, width), and where the upper left one lies, (x, y)."""
CONTROLS = {
    "rectanglelabels": "RectangleLabels", "polygonlabels": "PolygonLabels", "brushlabels": "BrushLabels",
    "keypointlabels": "KeyPointLabels",
}  # fmt: skip
IMAGE = "image"
POINT_WIDTH = 0.5
"""How large Label Studio shows a point, in per cent of the image."""


def can_export_objects(objects: Objects) -> bool:
    """Whether the sizes of all images are known, without which no labelling tool can place anything."""
    return len(objects.sizes) == len(objects.items)


def write_objects_for_cvat(
    path: str | Path, candidates: pd.DataFrame, objects: Objects, areas: Sequence[Area | None] | None = None
) -> Path:
    """Write fused objects as CVAT's XML for images 1.1: upload it to a task with the same images.

    Parameters
    ----------
    candidates : ``truth_`` of :class:`annotruth.fusion.ObjectConsensus`
    objects : what it was fused of, for the images' names and sizes
    areas : the pixels of each candidate, where they are known
    """
    path = Path(path)
    by_item = _by_item(path, candidates, objects, areas)
    with atomic(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        labels = "".join(f"<label><name>{escape(name)}</name></label>" for name in objects.classes)
        file.write('<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n  <version>1.1</version>\n')
        file.write(f"  <meta><task><name>annotruth</name><labels>{labels}</labels></task></meta>\n")
        for number, ((height, width), origin) in enumerate(zip(objects.sizes, objects.origins)):
            size = f'width="{width}" height="{height}"'
            file.write(f'  <image id="{number}" name={quoteattr(origin)} {size}>\n')
            for row, area in by_item.get(objects.items[number], []):
                file.write(f"    {_cvat_shape(row, area)}\n")
            file.write("  </image>\n")
        file.write("</annotations>\n")
    return path


def write_objects_for_label_studio(
    path: str | Path, candidates: pd.DataFrame, objects: Objects, areas: Sequence[Area | None] | None = None
) -> Path:
    """Write fused objects as Label Studio's pre-annotations, and beside them label_config.xml, the interface for them.

    Parameters are those of :func:`write_objects_for_cvat`.
    """
    path = Path(path)
    by_item = _by_item(path, candidates, objects, areas)
    tasks = []
    for number, (size, origin) in enumerate(zip(objects.sizes, objects.origins)):
        found = by_item.get(objects.items[number], [])
        regions = [_region(place, row, area, size) for place, (row, area) in enumerate(found)]
        lowest = {"score": min(region["score"] for region in regions)} if regions else {}
        prediction = {"model_version": "annotruth", "result": regions, **lowest}
        tasks.append({"data": {IMAGE: origin}, "predictions": [prediction]})
    with atomic(path) as temporary:
        temporary.write_text(json.dumps(tasks, ensure_ascii=False), encoding="utf-8")
    labels = "".join(f"\n    <Label value={quoteattr(name)}/>" for name in objects.classes)
    controls = "".join(
        f'\n  <{tag} name="{kind}" toName="{IMAGE}">{labels}\n  </{tag}>' for kind, tag in CONTROLS.items()
    )
    with atomic(path.with_name("label_config.xml")) as temporary:
        text = f'<View>\n  <Image name="{IMAGE}" value="${IMAGE}"/>{controls}\n</View>\n'
        temporary.write_text(text, encoding="utf-8")
    return path


def _by_item(
    path: Path, candidates: pd.DataFrame, objects: Objects, areas: Sequence[Area | None] | None
) -> dict[str, list[tuple[dict[Any, Any], Area | None]]]:
    if not can_export_objects(objects):
        raise InputError(f"{path}: a labelling tool needs the sizes of the images, which a table of boxes lacks.")
    found: dict[str, list[tuple[dict[Any, Any], Area | None]]] = {}
    for row, area in zip(candidates.to_dict("records"), areas or [None] * len(candidates)):
        found.setdefault(row["item"], []).append((row, area))
    return found


def outline(area: Area) -> np.ndarray | None:
    """A polygon (points, 2) of (x, y) that holds the middle of an area's pixels and of no others; None if none does.

    Examples
    --------
    >>> outline((np.ones((1, 2), dtype=bool), (3, 5))).tolist()
    [[4.5, 6.0], [3.5, 6.0], [3.0, 5.5], [3.5, 5.0], [4.5, 5.0], [5.0, 5.5]]
    >>> outline((np.array([[1, 0, 1]], dtype=bool), (0, 0))) is None
    True
    """
    from skimage.measure import find_contours  # takes its time to import

    rings = find_contours(np.pad(area[0], 1).astype(np.float64), 0.5)
    if len(rings) != 1:  # holes, or parts
        return None
    points = rings[0][:-1, ::-1] - 0.5 + area[1]  # without the frame of one pixel, whose middle lies half on
    before, after = points - np.roll(points, 1, axis=0), np.roll(points, -1, axis=0) - points
    bends = before[:, 0] * after[:, 1] != before[:, 1] * after[:, 0]
    return points[bends]


def _cvat_shape(row: dict[Any, Any], area: Area | None) -> str:
    about = f'label={quoteattr(row["label"])} source="auto" occluded="0" z_order="0"'
    ring = None if area is None else outline(area)
    if ring is not None:
        return f'<polygon {about} points="{";".join(f"{x:.2f},{y:.2f}" for x, y in ring)}"></polygon>'
    if area is not None:
        (height, width), (left, top) = area[0].shape, area[1]
        code = ", ".join(map(str, roll_counts(area[0])))
        return f'<mask {about} rle="{code}" left="{left}" top="{top}" width="{width}" height="{height}"></mask>'
    x1, y1, x2, y2 = (float(row[name]) for name in BOX)
    if (x1, y1) == (x2, y2):
        return f'<points {about} points="{x1:.2f},{y1:.2f}"></points>'
    return f'<box {about} xtl="{x1:.2f}" ytl="{y1:.2f}" xbr="{x2:.2f}" ybr="{y2:.2f}"></box>'


def _region(number: int, row: dict[Any, Any], area: Area | None, size: tuple[int, int]) -> dict[str, Any]:
    height, width = size
    x1, y1, x2, y2 = (float(row[name]) for name in BOX)
    value: dict[str, Any] = {"x": 100 * x1 / width, "y": 100 * y1 / height}
    ring = None if area is None else outline(area)
    if ring is not None:
        kind, value = "polygonlabels", {"points": (100 * ring / (width, height)).tolist(), "closed": True}
    elif area is not None:
        (rows, columns), (left, top) = area[0].shape, area[1]
        mask = np.zeros(size, dtype=bool)
        mask[top : top + rows, left : left + columns] = area[0]
        kind, value = "brushlabels", {"format": "rle", "rle": label_studio_code(mask)}
    elif (x1, y1) == (x2, y2):
        kind, value = "keypointlabels", value | {"width": POINT_WIDTH}
    else:
        sides = {"width": 100 * (x2 - x1) / width, "height": 100 * (y2 - y1) / height, "rotation": 0}
        kind, value = "rectanglelabels", value | sides
    return {
        "id": f"object_{number}", "type": kind, "from_name": kind, "to_name": IMAGE, "original_width": width,
        "original_height": height, "image_rotation": 0, "score": float(row["probability"]),
        "value": value | {kind: [str(row["label"])]},
    }  # fmt: skip
