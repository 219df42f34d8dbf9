"""Objects from a labelling tool's export, and fused ones back."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from annotruth.cli import app
from annotruth.errors import InputError
from annotruth.fusion import group_objects
from annotruth.io import load_objects, write_objects


@pytest.fixture
def drawn(tmp_path: Path) -> Path:
    """Two cells by ann and bob, a third by bob alone; cy looked and saw nothing in the second image."""
    cells = [
        [[1, 1], [6, 1], [6, 5], [1, 5]],
        [[10, 10], [16, 10], [16, 15], [10, 15]],
        [[1, 12], [4, 12], [4, 15], [1, 15]],
    ]
    for rater, numbers in (("ann", (0, 1)), ("bob", (0, 1, 2)), ("cy", (0, 1))):
        for case in "ab":
            shapes = [{"label": "cell", "points": cells[number], "shape_type": "polygon"} for number in numbers]
            content = {"shapes": [] if (rater, case) == ("cy", "b") else shapes, "imagePath": f"{case}.png",
                       "imageHeight": 20, "imageWidth": 20}  # fmt: skip
            (tmp_path / "drawn" / rater).mkdir(parents=True, exist_ok=True)
            (tmp_path / "drawn" / rater / f"{case}.json").write_text(json.dumps(content))
    return tmp_path / "drawn"


def test_every_shape_is_an_object(drawn: Path) -> None:
    objects = load_objects(drawn, source="labelme")
    assert (len(objects), objects.raters, objects.classes) == (12, ("ann", "bob", "cy"), ("cell",))
    assert objects.labelled.all()
    first = objects.table().iloc[0]
    assert tuple(first[["x1", "y1", "x2", "y2"]]) == (1, 1, 6, 5)
    assert objects.areas[0] is not None
    assert objects.areas[0].sum() == 20


def test_masks_in_which_each_object_has_a_number(tmp_path: Path) -> None:
    mask = np.zeros((20, 24), dtype=np.uint16)
    mask[2:6, 3:9], mask[10:15, 4:8], mask[9:12, 15:20] = 7, 1000, 255
    for rater, other in (("ann", mask), ("bob", np.where(mask == 255, 0, mask))):
        (tmp_path / "cases" / "raters" / rater).mkdir(parents=True)
        np.save(tmp_path / "cases" / "raters" / rater / "a.npy", other)
    objects = load_objects(tmp_path / "cases")
    assert (len(objects), objects.classes, objects.raters) == (5, ("object",), ("ann", "bob"))
    assert sorted(map(tuple, objects.boxes[:3].tolist())) == [(3, 2, 9, 6), (4, 10, 8, 15), (15, 9, 20, 12)]
    assert group_objects(objects).tolist().count(0) == 2
    np.save(tmp_path / "cases" / "raters" / "bob" / "a.npy", np.zeros((4, 5, 6), dtype=np.uint8))
    with pytest.raises(InputError, match="objects lie in planes, this mask has 3 axes"):
        load_objects(tmp_path / "cases")


def test_fused_at_the_command_line(drawn: Path, tmp_path: Path) -> None:
    ended = CliRunner().invoke(app, ["fuse", str(drawn), "--objects", "-o", str(tmp_path / "fused")])
    assert ended.exit_code == 0, ended.output
    truth = pd.read_csv(tmp_path / "fused" / "objects.csv")
    assert truth.groupby("item").size().to_dict() == {"a": 2, "b": 2}
    raters = pd.read_csv(tmp_path / "fused" / "raters.csv").set_index("rater")
    assert raters.loc["ann", "detection"] > raters.loc["cy", "detection"]
    coco = json.loads((tmp_path / "fused" / "objects.json").read_text())
    assert coco["annotations"][0]["bbox"] == [1, 1, 5, 4]
    assert {image["file_name"] for image in coco["images"]} == {"a", "b"}


def test_what_has_no_shapes_is_refused(tmp_path: Path, drawn: Path) -> None:
    (tmp_path / "labels.csv").write_text("item,rater,label\na,ann,x\n")
    with pytest.raises(InputError, match="A table of objects needs item, rater, label and x1"):
        load_objects(tmp_path / "labels.csv")
    with pytest.raises(InputError, match="holds no shapes"):
        load_objects(tmp_path / "labels.csv", source="label-table")
    with pytest.raises(InputError, match=r"written as \.csv or \.json"):
        write_objects(tmp_path / "x.txt", pd.DataFrame())


def test_a_shape_without_a_pixel_is_named_and_left_out(drawn: Path) -> None:
    file = drawn / "ann" / "a.json"
    content = json.loads(file.read_text())
    content["shapes"][0]["points"] = [[1, 1], [1.1, 1], [1.1, 1.1]]
    file.write_text(json.dumps(content))
    told: list[str] = []
    objects = load_objects(drawn, source="labelme", report=lambda problem: told.append(str(problem)))
    assert len(objects) == 11
    assert told == [f"{file} (case a, rater ann): a shape of cell covers no pixel. Correct or remove it."]
    assert np.isfinite(objects.boxes).all()
