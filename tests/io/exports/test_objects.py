"""Fused objects in labelling tools: what is written is read again, by our readers and by the tools' own rules."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import ndimage

from annotruth.data.objects import Objects
from annotruth.errors import InputError
from annotruth.fusion.folder.objects import fuse_objects
from annotruth.io import load_objects
from annotruth.io.exports.objects import outline, write_objects_for_cvat, write_objects_for_label_studio
from annotruth.io.shapes import Rings, paint_shapes


@pytest.fixture
def drawn(tmp_path: Path) -> Path:
    """A cell, and a point, by two raters on an image in a folder; nothing on another."""
    shapes = [
        {"label": "cell", "points": [[2, 3], [12, 3], [12, 9]], "shape_type": "polygon"},
        {"label": "spot", "points": [[20.5, 6.25]], "shape_type": "point"},
    ]
    for rater in ("ann", "bob"):
        (tmp_path / "drawn" / rater).mkdir(parents=True)
        for name, own in (("a", shapes), ("b", [])):
            content = {"shapes": own, "imagePath": f"slides/{name}.png", "imageHeight": 16, "imageWidth": 24}
            (tmp_path / "drawn" / rater / f"{name}.json").write_text(json.dumps(content))
    return tmp_path / "drawn"


def as_annotations(path: Path) -> Path:
    """Label Studio's pre-annotations as somebody's, as they are once they were accepted."""
    tasks = json.loads(path.read_text())
    accepted = [
        {"id": number, "data": task["data"], "annotations": [{"completed_by": 1, **task["predictions"][0]}]}
        for number, task in enumerate(tasks)
    ]
    copy = path.parents[2] / "accepted.json"
    copy.write_text(json.dumps(accepted))
    return copy


def test_fused_objects_come_back_from_both_tools(drawn: Path, tmp_path: Path) -> None:
    fused, problems = fuse_objects(drawn, tmp_path / "fused")
    assert [problem.severity for problem in problems] == ["warning", "warning"]
    first = load_objects(drawn)
    cvat = load_objects(tmp_path / "fused" / "cvat" / "annotations.xml")
    accepted = as_annotations(tmp_path / "fused" / "label_studio" / "predictions.json")
    other = load_objects(accepted, report=lambda problem: None)  # of the empty image nobody knows the size
    for found in (cvat, other):
        table = found.table()
        assert sorted(table["label"]) == ["cell", "spot"]
        columns = ["label", "x1", "y1", "x2", "y2"]
        expected = fused.truth_[columns].sort_values("label")
        pd.testing.assert_frame_equal(
            table[columns].sort_values("label").reset_index(drop=True), expected.reset_index(drop=True)
        )
        cell = int(np.flatnonzero(table["label"] == "cell")[0])
        np.testing.assert_array_equal(found.areas[cell], first.areas[0])
    assert set(cvat.origins) == set(first.origins) == {"slides/a.png", "slides/b.png"}
    config = (tmp_path / "fused" / "label_studio" / "label_config.xml").read_text()
    assert config.count('<Label value="spot"/>') == 4


def test_an_area_goes_back_as_a_polygon_or_as_a_mask() -> None:
    rng = np.random.default_rng(0)
    whole = 0
    for _ in range(40):
        area = ndimage.binary_dilation(rng.random((9, 11)) > 0.9, iterations=2)
        ring = outline((area, (4, 3)))
        parts, holes = ndimage.label(area)[1], ndimage.label(~np.pad(area, 1), np.ones((3, 3)))[1]
        assert (ring is not None) == (parts == 1 and holes == 1)
        if ring is not None:
            whole += 1
            expected = np.zeros((20, 20), dtype=np.uint8)
            expected[3:12, 4:15] = area
            np.testing.assert_array_equal(paint_shapes([Rings("a", (ring,))], (20, 20), ("background", "a")), expected)
    assert 5 < whole < 40


def test_an_area_with_a_hole_is_a_mask_and_a_brush(drawn: Path, tmp_path: Path) -> None:
    objects, area = load_objects(drawn), np.ones((5, 6), dtype=bool)
    area[2, 3] = False
    row = {"item": "a", "label": "cell", "probability": 1.0, "x1": 2, "y1": 3, "x2": 8, "y2": 8}
    candidates = pd.DataFrame([row])
    path = write_objects_for_cvat(tmp_path / "hole.xml", candidates, objects, [(area, (2, 3))])
    np.testing.assert_array_equal(load_objects(path).areas[0], area)
    (tmp_path / "out" / "x").mkdir(parents=True)
    path = write_objects_for_label_studio(tmp_path / "out" / "x" / "a.json", candidates, objects, [(area, (2, 3))])
    found = load_objects(as_annotations(path), report=lambda problem: None)
    np.testing.assert_array_equal(found.areas[0], area)


def test_boxes_that_raters_drew_go_back_as_boxes(drawn: Path, tmp_path: Path) -> None:
    for file in drawn.rglob("a.json"):
        content = json.loads(file.read_text())
        content["shapes"] = [{"label": "cell", "points": [[2, 3], [9, 8]], "shape_type": "rectangle"}]
        file.write_text(json.dumps(content))
    fuse_objects(drawn, tmp_path / "fused")
    assert 'xtl="2.00" ytl="3.00" xbr="9.00" ybr="8.00"' in (tmp_path / "fused/cvat/annotations.xml").read_text()


def test_boxes_go_back_as_boxes(tmp_path: Path) -> None:
    frame = pd.DataFrame({"item": ["a"], "rater": ["ann"], "label": ["<cell>"], "x1": [1.5], "y1": [2.0], "x2": [9.0],
                          "y2": [5.0]})  # fmt: skip
    bare = Objects.from_table(frame)
    with pytest.raises(InputError, match="needs the sizes of the images"):
        write_objects_for_cvat(tmp_path / "a.xml", frame, bare)
    parts = {name: getattr(bare, name) for name in ("items", "raters", "classes", "item", "rater", "label", "boxes")}
    objects = Objects(**parts, labelled=bare.labelled, areas=bare.areas, sizes=((10, 20),), origins=("a & b.png",))
    candidates = frame.assign(probability=0.75)
    text = write_objects_for_cvat(tmp_path / "a.xml", candidates, objects).read_text()
    assert '<box label="&lt;cell&gt;"' in text
    assert 'xtl="1.50" ytl="2.00" xbr="9.00" ybr="5.00"' in text
    [task] = json.loads(write_objects_for_label_studio(tmp_path / "a.json", candidates, objects).read_text())
    [region] = task["predictions"][0]["result"]
    assert (task["data"], region["score"], region["type"]) == ({"image": "a & b.png"}, 0.75, "rectanglelabels")
    value = region["value"]
    assert (value["x"], value["y"], value["width"], value["height"]) == (7.5, 20, 37.5, 30)
