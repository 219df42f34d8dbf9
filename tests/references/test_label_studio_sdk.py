"""Label Studio's own library: its brushes are ours to the pixel, and it finds our pre-annotations sound."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import annotruth as at
from annotruth.fusion.folder.objects import fuse_objects
from annotruth.io.exports import export_result
from annotruth.io.runs import label_studio_code, label_studio_mask

Program = Callable[[str], ModuleType]
SIZES = ((1, 1), (3, 50), (37, 41), (64, 64))


@pytest.fixture
def brush(program: Program) -> Any:
    return program("label_studio_sdk.converter.brush")


@pytest.fixture
def interface(program: Program) -> Any:
    return program("label_studio_sdk.label_interface").LabelInterface


def masks() -> list[np.ndarray]:
    """Nothing, everything, speckles and areas, in several sizes."""
    rng = np.random.default_rng(0)
    found = [np.full(size, value) for size in SIZES for value in (False, True)]
    return found + [rng.random(size) < share for size in SIZES for share in (0.02, 0.5)]


def test_it_decodes_our_brushes(brush: Any) -> None:
    for mask in masks():
        theirs = np.reshape(brush.decode_rle(label_studio_code(mask)), [*mask.shape, 4])
        np.testing.assert_array_equal(theirs[..., 3] > 0, mask)


def test_we_decode_its_brushes(brush: Any) -> None:
    for mask in masks():
        np.testing.assert_array_equal(label_studio_mask(brush.mask2rle(mask.astype(np.uint8) * 255), mask.shape), mask)


def test_we_import_what_its_brush_drew(brush: Any, planes: dict[str, np.ndarray], tmp_path: Path) -> None:
    tasks = []
    for number, (name, labels) in enumerate(planes.items()):
        result = [
            {
                "id": str(value), "type": "brushlabels", "from_name": "tag", "to_name": "image",
                "original_width": labels.shape[1], "original_height": labels.shape[0], "image_rotation": 0,
                "value": {
                    "format": "rle", "rle": brush.mask2rle((labels == value).astype(np.uint8) * 255),
                    "brushlabels": [label],
                },
            }
            for value, label in ((1, "cell"), (2, "wall"))
        ]  # fmt: skip
        work = {"id": number, "completed_by": {"id": 1, "email": "ann@x.org"}, "result": result}
        tasks.append({"id": number, "data": {"image": f"/data/{name}.png"}, "annotations": [work]})
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    found = at.load(tmp_path / "export.json")
    assert found.raters == ("ann@x.org",)
    for number, labels in enumerate(planes.values()):
        np.testing.assert_array_equal(found.item_masks(number)[0], labels)


def test_its_interface_takes_our_masks(
    brush: Any, interface: Any, known: Path, planes: dict[str, np.ndarray], tmp_path: Path
) -> None:
    out = export_result(known, tmp_path / "out", "label-studio")
    project = interface((out / "label_config.xml").read_text())
    assert project.validate() is None  # raises where something is wrong
    for task, labels in zip(json.loads((out / "predictions.json").read_text()), planes.values()):
        [prediction] = task["predictions"]
        assert project.validate_prediction(prediction, return_errors=True) == []
        drawn = np.zeros(labels.shape, dtype=np.uint8)
        for region in prediction["result"]:
            pixels = np.reshape(brush.decode_rle(region["value"]["rle"]), [*labels.shape, 4])[..., 3] > 0
            drawn[pixels] = ("background", "cell", "wall").index(region["value"]["brushlabels"][0])
        np.testing.assert_array_equal(drawn, labels)


def test_its_interface_takes_our_answers(interface: Any, tmp_path: Path) -> None:
    (tmp_path / "known").mkdir()
    (tmp_path / "known" / "labels.csv").write_text("item,rater,label\na,ann,cat\nb,ann,dog\n")
    (tmp_path / "known" / "truth.csv").write_text("item,truth\na,cat\nb,dog\n")
    out = export_result(tmp_path / "known", tmp_path / "out", "label-studio")
    project = interface((out / "label_config.xml").read_text())
    for task in json.loads((out / "predictions.json").read_text()):
        assert project.validate_prediction(task["predictions"][0], return_errors=True) == []


def test_its_interface_takes_our_objects(interface: Any, tmp_path: Path) -> None:
    """A polygon, one with a hole in it, a box and a point."""
    outer = [[1, 1], [12, 1], [12, 12], [1, 12]]
    shapes = [
        {"label": "cell", "points": outer, "shape_type": "polygon"},
        {"label": "spot", "points": [[20.5, 6.25]], "shape_type": "point"},
        {"label": "wall", "points": [[13, 2], [17, 9]], "shape_type": "rectangle"},
    ]
    for rater in ("ann", "bob"):
        (tmp_path / "drawn" / rater).mkdir(parents=True)
        content = {"shapes": shapes, "imagePath": "slides/a.png", "imageHeight": 16, "imageWidth": 24}
        (tmp_path / "drawn" / rater / "a.json").write_text(json.dumps(content))
    fuse_objects(tmp_path / "drawn", tmp_path / "fused")
    out = tmp_path / "fused" / "label_studio"
    project = interface((out / "label_config.xml").read_text())
    [task] = json.loads((out / "predictions.json").read_text())
    [prediction] = task["predictions"]
    assert len(prediction["result"]) == 3
    assert project.validate_prediction(prediction, return_errors=True) == []
