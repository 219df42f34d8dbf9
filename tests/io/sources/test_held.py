"""The table of sources in the documentation, cell by cell: every shape that a tool holds is read, and whose it is."""

from __future__ import annotations

import base64
import io
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import annotruth as at
from annotruth.io import SOURCES, load_objects
from annotruth.io.runs import coco_code, label_studio_code, roll_counts
from annotruth.io.sources.imports import ImportSource

HEIGHT, WIDTH = 8, 9
SQUARE = np.zeros((HEIGHT, WIDTH), dtype=bool)
SQUARE[2:5, 2:6] = True
CORNERS = [[2, 2], [6, 2], [6, 5], [2, 5]]
SHAPES = ("mask", "polygon", "box", "ellipse", "point")
"""All of them are the square above; the ellipse lies in it, and the point is at (4, 3.5)."""


def png(mask: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(mask.astype(np.uint8) * 255).save(buffer, "png")
    return buffer.getvalue()


def cvat(shape: str, folder: Path) -> None:
    drawn = {
        "mask": '<mask label="cell" rle="0, 12" left="2" top="2" width="4" height="3"/>',
        "polygon": '<polygon label="cell" points="2,2;6,2;6,5;2,5"/>',
        "box": '<box label="cell" xtl="2" ytl="2" xbr="6" ybr="5"/>',
        "ellipse": '<ellipse label="cell" cx="4" cy="3.5" rx="2" ry="1.5"/>',
        "point": '<points label="cell" points="4,3.5"/>',
    }[shape]
    (folder / "ann.xml").write_text(
        f'<annotations><version>1.1</version><image id="0" name="a.png" width="9" height="8">{drawn}</image>'
        "</annotations>"
    )


def label_studio(shape: str, folder: Path) -> None:
    kind, value = {
        "mask": ("brush", {"format": "rle", "rle": label_studio_code(SQUARE)}),
        "polygon": ("polygon", {"points": [[100 * x / WIDTH, 100 * y / HEIGHT] for x, y in CORNERS]}),
        "box": ("rectangle", {"x": 200 / 9, "y": 25, "width": 400 / 9, "height": 37.5, "rotation": 0}),
        "ellipse": ("ellipse", {"x": 400 / 9, "y": 43.75, "radiusX": 200 / 9, "radiusY": 18.75}),
        "point": ("keypoint", {"x": 400 / 9, "y": 43.75, "width": 0.5}),
    }[shape]
    region = {"id": "1", "type": f"{kind}labels", "original_width": WIDTH, "original_height": HEIGHT}
    region["value"] = value | {f"{kind}labels": ["cell"]}
    work = {"completed_by": {"id": 4, "email": "ann"}, "result": [region]}
    (folder / "export.json").write_text(json.dumps([{"id": 1, "data": {"image": "a.png"}, "annotations": [work]}]))


def labelme(shape: str, folder: Path) -> None:
    drawn: dict[str, Any] = {
        "mask": {"points": [[2, 2], [5, 4]], "mask": base64.b64encode(png(SQUARE[2:5, 2:6])).decode()},
        "polygon": {"points": CORNERS},
        "box": {"points": [[2, 2], [6, 5]]},
        "ellipse": {"points": [[4, 3.5], [4, 5]]},
        "point": {"points": [[4, 3.5]]},
    }[shape]
    kind = {"box": "rectangle", "ellipse": "circle"}.get(shape, shape)
    content = {"shapes": [{"label": "cell", "shape_type": kind, **drawn}], "imagePath": "a.png"}
    (folder / "ann").mkdir()
    (folder / "ann" / "a.json").write_text(json.dumps(content | {"imageHeight": HEIGHT, "imageWidth": WIDTH}))


def coco(shape: str, folder: Path) -> None:
    drawn: dict[str, Any] = {
        "mask": {"segmentation": {"size": [8, 9], "counts": coco_code(roll_counts(SQUARE, order="F"))}},
        "polygon": {"segmentation": [[2, 2, 6, 2, 6, 5, 2, 5]]},
        "box": {"bbox": [2, 2, 4, 3]},
        "point": {"keypoints": [4, 3.5, 2]},
    }[shape]
    content = {
        "images": [{"id": 0, "file_name": "a.png", "height": HEIGHT, "width": WIDTH}],
        "annotations": [{"id": 1, "image_id": 0, "category_id": 1, **drawn}],
        "categories": [{"id": 1, "name": "cell"}],
    }
    (folder / "ann.json").write_text(json.dumps(content))


def via(shape: str, folder: Path) -> None:
    drawn = {
        "polygon": {"name": "polygon", "all_points_x": [2, 6, 6, 2], "all_points_y": [2, 2, 5, 5]},
        "box": {"name": "rect", "x": 2, "y": 2, "width": 4, "height": 3},
        "ellipse": {"name": "ellipse", "cx": 4, "cy": 3.5, "rx": 2, "ry": 1.5},
        "point": {"name": "point", "cx": 4, "cy": 3.5},
    }[shape]
    region = {"shape_attributes": drawn, "region_attributes": {"type": "cell"}}
    (folder / "ann.json").write_text(json.dumps({"a.png9": {"filename": "a.png", "size": 9, "regions": [region]}}))


def qupath(shape: str, folder: Path) -> None:
    geometry = {
        "polygon": {"type": "Polygon", "coordinates": [[*CORNERS, CORNERS[0]]]},
        "point": {"type": "Point", "coordinates": [4, 3.5]},
    }[shape]
    feature = {"type": "Feature", "geometry": geometry, "properties": {"classification": {"name": "cell"}}}
    (folder / "ann").mkdir()
    (folder / "ann" / "a.geojson").write_text(json.dumps([feature]))


def supervisely(shape: str, folder: Path) -> None:
    packed = base64.b64encode(zlib.compress(png(SQUARE[2:5, 2:6]))).decode()
    kind, drawn = {
        "mask": ("bitmap", {"bitmap": {"origin": [2, 2], "data": packed}}),
        "polygon": ("polygon", {"points": {"exterior": [[1.5, 1.5], [5.5, 1.5], [5.5, 4.5], [1.5, 4.5]]}}),
        "box": ("rectangle", {"points": {"exterior": [[2, 2], [5, 4]]}}),
        "point": ("point", {"points": {"exterior": [[3.5, 3]]}}),
    }[shape]
    (folder / "ds" / "ann").mkdir(parents=True)
    cell = {"classTitle": "cell", "geometryType": kind, "labelerLogin": "ann", **drawn}
    content = {"size": {"height": HEIGHT, "width": WIDTH}, "objects": [cell]}
    (folder / "ds" / "ann" / "a.png.json").write_text(json.dumps(content))


def labelbox(shape: str, folder: Path) -> None:
    corners = [{"x": x, "y": y} for x, y in ((2, 2), (6, 2), (6, 5), (2, 5))]
    drawn = {
        "mask": {"mask": {"url": "https://api.labelbox.com/masks/f1"}},
        "polygon": {"polygon": corners},
        "box": {"bounding_box": {"left": 2, "top": 2, "width": 4, "height": 3}},
        "point": {"point": {"x": 4, "y": 3.5}},
    }[shape]
    if shape == "mask":  # as users download it
        (folder / "f1.png").write_bytes(png(SQUARE))
    label = {
        "label_details": {"created_by": "ann"},
        "annotations": {"objects": [{"feature_id": "f1", "name": "cell", **drawn}]},
    }
    row = {
        "data_row": {"external_id": "a.png"}, "media_attributes": {"height": HEIGHT, "width": WIDTH},
        "projects": {"p": {"labels": [label]}},
    }  # fmt: skip
    (folder / "export.ndjson").write_text(json.dumps(row))


TOOLS: dict[str, Callable[[str, Path], None]] = {
    "cvat": cvat, "label-studio": label_studio, "labelme": labelme, "coco": coco, "via": via, "qupath": qupath,
    "supervisely": supervisely, "labelbox": labelbox,
}  # fmt: skip
BY_KEY = {source.key: source for source in SOURCES.values() if isinstance(source, ImportSource)}
APART = {
    ("cityscapes", "polygon"): "test_cityscapes.py::test_fine_and_coarse",
    ("dicom", "polygon"): "test_dicom.py::test_contours_are_filled_on_the_series",
    ("lidc", "polygon"): "test_lidc.py::test_outlines_lie_outside_and_holes_are_cut",
    ("pylidc", "polygon"): "test_pylidc.py::test_it_draws_what_the_xml_draws",
}
"""Shapes of sources that are no tools', and the test that reads them."""


@pytest.mark.parametrize(
    ("key", "shape"), [(key, shape) for key in TOOLS for shape in SHAPES if shape in BY_KEY[key].held]
)
def test_every_shape_that_a_tool_holds_is_read(key: str, shape: str, tmp_path: Path) -> None:
    folder = tmp_path / "drawn"
    folder.mkdir()
    TOOLS[key](shape, folder)
    Image.fromarray(np.zeros((HEIGHT, WIDTH), np.uint8)).save(folder / "a.png")
    objects = load_objects(folder)
    assert objects.raters == ("ann",)
    box = objects.table()[["label", "x1", "y1", "x2", "y2"]].to_numpy().tolist()
    if shape == "point":
        assert box == [["cell", 4, 3.5, 4, 3.5]]
        return
    found = at.load(folder)
    assert (found.items, found.raters, found.classes) == (("a",), ("ann",), ("background", "cell"))
    if shape == "ellipse":
        assert not found.masks[0, 0][~SQUARE].any()
        assert 6 <= found.masks.sum() < 12
    else:
        np.testing.assert_array_equal(found.masks[0, 0], SQUARE)
        assert box == [["cell", 2, 2, 6, 5]]


@pytest.mark.parametrize("key", sorted(BY_KEY))
def test_every_shape_of_the_table_has_a_test(key: str) -> None:
    """Masks are what all other sources give, and what their own tests compare."""
    assert BY_KEY[key].identity
    for shape in set(BY_KEY[key].held) & {"polygon", "box", "ellipse", "point"}:
        assert key in TOOLS or _is_test(APART[key, shape])


def _is_test(place: str) -> bool:
    file, _, name = place.partition("::")
    return f"def {name}(" in (Path(__file__).parent / file).read_text()


@pytest.mark.parametrize("key", sorted(TOOLS))
def test_no_tool_is_said_to_hold_less_than_it_does(key: str, tmp_path: Path) -> None:
    for shape in set(SHAPES) - set(BY_KEY[key].held):
        with pytest.raises(KeyError, match=shape):  # there is no example of it
            TOOLS[key](shape, tmp_path)
