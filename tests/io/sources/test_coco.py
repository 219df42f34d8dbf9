"""COCO instances: one file per rater, or raters in a field; parts, run lengths, boxes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.io import check, import_source, load_objects
from annotruth.io.runs import coco_code

CELL, WALL = 7, 3


def write(path: Path, annotations: list[dict[str, Any]], images: str = "ab") -> Path:
    content = {
        "images": [{"id": n, "file_name": f"{name}.png", "height": 8, "width": 9} for n, name in enumerate(images, 1)],
        "annotations": [{"id": n, "iscrowd": 0, **each} for n, each in enumerate(annotations)],
        "categories": [{"id": CELL, "name": "cell"}, {"id": WALL, "name": "wall"}],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def drawn(segmentation: Any, image: int = 1, **more: Any) -> dict[str, Any]:
    return {"image_id": image, "category_id": CELL, "segmentation": segmentation, **more}


SQUARE = [2, 2, 6, 2, 6, 5, 2, 5]


@pytest.mark.parametrize(
    ("segmentation", "pixels"),
    [
        ([SQUARE], 12),
        ([SQUARE, [0, 0, 2, 0, 2, 1, 0, 1]], 14),
        ([SQUARE, SQUARE], 12),  # parts are beside each other: the same twice is no hole
        ({"size": [8, 9], "counts": [8, 4, 60]}, 4),
        ({"size": [8, 9], "counts": coco_code([8, 4, 60])}, 4),
    ],
)
def test_polygons_and_run_lengths(tmp_path: Path, segmentation: Any, pixels: int) -> None:
    found = at.load(write(tmp_path / "ann.json", [drawn(segmentation)]))
    assert (found.raters, found.classes) == (("ann",), ("background", "wall", "cell"))
    assert (found.masks[0, 0] == 2).sum() == pixels
    assert not found.masks[1].any()  # an image without annotations was looked at
    if isinstance(segmentation, dict):
        assert found.masks[0, 0, :4, 1].all()  # run lengths go down the columns


def test_a_box_counts_where_nothing_else_is_drawn(tmp_path: Path) -> None:
    found = at.load(write(tmp_path / "ann.json", [drawn([], bbox=[1, 1, 3, 2])]))
    assert (found.masks[0, 0] == 2).sum() == 6


def test_raters_are_files_or_folders(tmp_path: Path) -> None:
    write(tmp_path / "ann" / "annotations" / "instances_default.json", [drawn([SQUARE])])
    write(tmp_path / "bob.json", [])
    assert set(at.load(tmp_path).raters) == {"ann", "bob"}


def test_raters_may_stand_in_a_field(tmp_path: Path) -> None:
    several = [drawn([SQUARE], annotator_id=4), drawn([SQUARE], image=2, annotator_id=5)]
    found = at.load(write(tmp_path / "all.json", several))
    assert found.raters == ("4", "5")
    assert found.labelled().tolist() == [[True, False], [False, True]]
    named = [drawn([SQUARE], attributes={"who": "ann"}), drawn([SQUARE], attributes={"who": "bob"})]
    assert at.load(write(tmp_path / "all.json", named), rater="who").raters == ("ann", "bob")
    with pytest.raises(InputError, match="no annotation has a field nobody"):
        at.load(tmp_path / "all.json", rater="nobody")


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (drawn([SQUARE], category_id=99), "category 99, unknown here"),
        (drawn({"size": [4, 4], "counts": [16]}), "not (8, 9) pixels"),
        (drawn({"size": [8, 9], "counts": [10**9]}), "tell of 1000000000 pixels"),
        (drawn({"size": [8, 9]}), "'counts' is missing"),
        (drawn([[1, 1, 2, 2]]), "three points"),
        (drawn([[1, 1, 2]]), "not as the tool writes it"),
        (drawn([]), "neither a segmentation nor a box"),
        (drawn([SQUARE], image=77), "1 annotations are of an image with the id 77"),
    ],
)
def test_what_is_wrong_is_left_out_and_named(tmp_path: Path, bad: dict[str, Any], message: str) -> None:
    write(tmp_path / "x" / "ann.json", [bad, drawn([SQUARE], image=2)])
    write(tmp_path / "x" / "bob.json", [drawn([SQUARE])])
    imported = import_source(tmp_path / "x", tmp_path / "cases")
    [problem] = imported.skipped
    assert problem.file.name == "ann.json"
    assert message in problem.message
    assert imported.raters["bob"] == 2
    assert imported.raters["ann"] == (2 if "77" in message else 1)


def test_pycocotools_paints_the_same_but_for_edges(tmp_path: Path) -> None:
    reference = pytest.importorskip("pycocotools.mask", reason="pycocotools is not installed")
    turn = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    ring = (np.stack([4.4 + 3 * np.cos(turn), 4.1 + 3 * np.sin(turn)], axis=1)).ravel().tolist()
    theirs = reference.decode(reference.merge(reference.frPyObjects([ring], 8, 9)))
    ours = at.load(write(tmp_path / "ann.json", [drawn([ring])])).masks[0, 0] == 2
    assert (ours & (theirs == 1)).sum() / (ours | (theirs == 1)).sum() > 0.9


def keypoints(*numbers: float, **more: Any) -> dict[str, Any]:
    return {"image_id": 1, "category_id": CELL, "keypoints": list(numbers), "bbox": [1, 1, 6, 5], **more}


def test_keypoints_are_points_of_their_own_classes(tmp_path: Path) -> None:
    path = write(tmp_path / "ann.json", [keypoints(1.5, 2, 2, 0, 0, 0, 6, 5, 1), drawn([SQUARE])])
    content = json.loads(path.read_text())
    content["categories"][0]["keypoints"] = ["head", "middle", "tail"]
    path.write_text(json.dumps(content))
    found = load_objects(path).table()[["label", "x1", "y1", "x2", "y2"]]
    assert found.to_numpy().tolist() == [
        ["cell head", 1.5, 2, 1.5, 2], ["cell tail", 6, 5, 6, 5], ["cell", 2, 2, 6, 5],
    ]  # fmt: skip
    assert (at.load(path).masks[0, 0] == 2).sum() == 12  # the box around keypoints is no area
    assert "2 shapes have no area (keypoint)" in check(path)[0].message


def test_keypoints_without_names_are_of_their_category_and_must_be_as_many_as_names(tmp_path: Path) -> None:
    path = write(tmp_path / "ann.json", [keypoints(1.5, 2, 2)])
    assert load_objects(path).table()["label"].tolist() == ["cell"]
    content = json.loads(path.read_text())
    content["categories"][0]["keypoints"] = ["head", "tail"]
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"case a.png, rater ann\): an annotation of cell has 1 keypoints, not 2"):
        load_objects(path)


def test_images_lie_where_coco_has_them(tmp_path: Path, put: Any) -> None:
    write(tmp_path / "annotations" / "instances_default.json", [drawn([SQUARE])])
    for name in "ab":
        put(tmp_path / "images" / "default" / f"{name}.png", np.zeros((8, 9), np.uint8))
    assert at.load(tmp_path).has_images


def test_a_sound_file_has_no_problem_but_its_single_rater(tmp_path: Path) -> None:
    assert [problem.severity for problem in check(write(tmp_path / "a.json", [drawn([SQUARE])]))] == ["warning"]


def test_a_size_that_is_not_told_is_the_images(tmp_path: Path, put: Any) -> None:
    path = write(tmp_path / "ann.json", [drawn([SQUARE])], images="a")
    path.write_text(path.read_text().replace(', "height": 8, "width": 9', ""))
    with pytest.raises(InputError, match="does not tell the size of the image"):
        at.load(path)
    put(tmp_path / "a.png", np.zeros((8, 9), np.uint8))
    assert (at.load(path).masks > 0).sum() == 12
