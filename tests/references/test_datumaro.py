"""CVAT and COCO by datumaro: it reads what we write, and we read what it writes, to the pixel."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import annotruth as at
from annotruth.fusion.folder.objects import fuse_objects
from annotruth.io import load_objects
from annotruth.io.exports import export_result

Program = Callable[[str], ModuleType]


@pytest.fixture
def datumaro(program: Program) -> Any:
    return program("datumaro")


def painted(datumaro: Any, folder: Path, kind: str, size_of: dict[str, tuple[int, int]]) -> dict[str, np.ndarray]:
    """What datumaro reads, painted with the class numbers of its own list of labels, from 1."""
    found = {}
    for item in datumaro.Dataset.import_from(str(folder), kind):
        labels = np.zeros(size_of[item.id], dtype=np.uint8)
        for each in (one for one in item.annotations if one.type.name == "mask"):  # COCO's have boxes too
            labels[each.image.astype(bool)] = each.label + 1
        found[item.id] = labels
    return found


@pytest.mark.parametrize("kind", ["cvat", "coco"])
def test_it_reads_the_masks_we_write(
    datumaro: Any, kind: str, known: Path, planes: dict[str, np.ndarray], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    if kind == "coco":
        made = export_result(known, out / "annotations", kind)
        (made / "annotations.json").rename(made / "instances_default.json")
    else:
        export_result(known, out, kind)
    shutil.copytree(known / "images", out / "images" / ("default" if kind == "coco" else ""))
    found = painted(datumaro, out, kind, {name: labels.shape for name, labels in planes.items()})
    assert found.keys() == planes.keys()
    for name, labels in planes.items():
        np.testing.assert_array_equal(found[name], labels)


def written(datumaro: Any, planes: dict[str, np.ndarray], folder: Path, kind: str, draw: Callable[..., list]) -> Path:
    """A data set that datumaro writes, with the annotations that ``draw`` makes of each plane."""
    items = [
        datumaro.DatasetItem(
            id=name, media=datumaro.Image.from_numpy(np.full((*labels.shape, 3), 90, np.uint8), ext=".png"),
            annotations=draw(labels),
        )
        for name, labels in planes.items()
    ]  # fmt: skip
    datumaro.Dataset.from_iterable(items, categories=["cell", "wall"]).export(str(folder), kind, save_media=True)
    return folder


@pytest.mark.parametrize("kind", ["cvat", "coco_instances"])
def test_we_read_the_masks_it_writes(datumaro: Any, kind: str, planes: dict[str, np.ndarray], tmp_path: Path) -> None:
    def draw(labels: np.ndarray) -> list[Any]:
        return [datumaro.Mask(labels == number, label=number - 1, id=number, group=number) for number in (1, 2)]

    found = at.load(written(datumaro, planes, tmp_path / "theirs", kind, draw))
    assert (found.items, found.classes, len(found.raters)) == (("a", "b"), ("background", "cell", "wall"), 1)
    assert found.has_images
    for number, labels in enumerate(planes.values()):
        np.testing.assert_array_equal(found.item_masks(number)[0], labels)


@pytest.mark.parametrize("kind", ["cvat", "coco_instances"])
def test_we_read_the_polygons_and_boxes_it_writes(
    datumaro: Any, kind: str, planes: dict[str, np.ndarray], tmp_path: Path
) -> None:
    def draw(labels: np.ndarray) -> list[Any]:
        ring = [2.0, 2.0, 9.0, 2.0, 9.0, 7.0, 2.0, 7.0]
        return [
            datumaro.Polygon(ring, label=0, id=1, group=1),
            datumaro.Bbox(10, 8, 4, 5, label=1, id=2, group=2),
        ]  # fmt: skip

    folder = written(datumaro, planes, tmp_path / "theirs", kind, draw)
    found = at.load(folder)
    expected = np.zeros((16, 17), dtype=np.uint8)
    expected[2:7, 2:9], expected[8:13, 10:14] = 1, 2
    np.testing.assert_array_equal(found.item_masks(1)[0], expected)
    boxes = load_objects(folder).table()[["item", "label", "x1", "y1", "x2", "y2"]].to_numpy().tolist()
    assert sorted(boxes)[2:] == [["b", "cell", 2, 2, 9, 7], ["b", "wall", 10, 8, 14, 13]]


def test_we_read_the_points_it_writes(datumaro: Any, planes: dict[str, np.ndarray], tmp_path: Path) -> None:
    def draw(labels: np.ndarray) -> list[Any]:
        return [datumaro.Points([1.5, 2.0, 7.0, 3.0], label=1)]

    found = load_objects(written(datumaro, planes, tmp_path / "theirs", "cvat", draw)).table()
    assert found[["item", "label", "x1", "y1"]].to_numpy().tolist() == [
        [name, "wall", x, y] for name in "ab" for x, y in ((1.5, 2.0), (7.0, 3.0))
    ]


def test_we_read_the_tags_it_writes(datumaro: Any, planes: dict[str, np.ndarray], tmp_path: Path) -> None:
    number = iter((1, 0))
    folder = written(datumaro, planes, tmp_path / "theirs", "cvat", lambda _: [datumaro.Label(next(number))])
    found = at.load(folder)
    assert (found.kind, found.items) == ("labels", ("a", "b"))
    assert [found.classes[answer] for answer in found.answer_matrix()[:, 0]] == ["wall", "cell"]


def test_we_read_the_keypoints_it_writes(datumaro: Any, planes: dict[str, np.ndarray], tmp_path: Path) -> None:
    joints = datumaro.PointsCategories.from_iterable([(0, ["head", "tail"]), (1, ["corner"])])
    items = [
        datumaro.DatasetItem(
            id="a", media=datumaro.Image.from_numpy(np.full((23, 31, 3), 90, np.uint8), ext=".png"),
            annotations=[datumaro.Points([4.5, 3.0, 9.0, 8.0], [2, 1], label=0, id=1)],
        )
    ]  # fmt: skip
    labels = datumaro.LabelCategories.from_iterable(["cell", "wall"])
    categories = {datumaro.AnnotationType.label: labels, datumaro.AnnotationType.points: joints}
    made = datumaro.Dataset.from_iterable(items, categories=categories)
    made.export(str(tmp_path / "theirs"), "coco_person_keypoints", save_media=True)
    found = load_objects(tmp_path / "theirs").table()[["label", "x1", "y1", "x2", "y2"]]
    assert found.to_numpy().tolist() == [["cell head", 4.5, 3, 4.5, 3], ["cell tail", 9, 8, 9, 8]]


def test_it_reads_the_objects_we_fuse(datumaro: Any, known: Path, tmp_path: Path) -> None:
    """Two raters' boxes and polygons, fused and written for CVAT and as COCO."""
    shapes = (
        '<polygon label="cell" points="2,2;9,2;9,7"/><box label="wall" xtl="10" ytl="8" xbr="14" ybr="13"/>'
        '<points label="cell" points="3.5,12"/>'
    )
    for rater in ("ann", "bob"):
        (tmp_path / "jobs" / rater).mkdir(parents=True)
        (tmp_path / "jobs" / rater / "annotations.xml").write_text(
            "<annotations><version>1.1</version><meta><job><labels><label><name>cell</name></label><label>"
            "<name>wall</name></label></labels></job></meta>"
            f'<image id="0" name="a.png" width="31" height="23">{shapes}</image></annotations>'
        )
    fuse_objects(tmp_path / "jobs", tmp_path / "fused")
    shutil.copytree(known / "images", tmp_path / "fused" / "cvat" / "images")
    [item] = datumaro.Dataset.import_from(str(tmp_path / "fused" / "cvat"), "cvat")
    kinds = {each.type.name: each for each in item.annotations}
    assert sorted(kinds) == ["bbox", "points", "polygon"]
    assert kinds["bbox"].get_bbox() == [10, 8, 4, 5]
    assert kinds["points"].points == [3.5, 12]
    ours = load_objects(tmp_path / "fused" / "cvat").table().set_index("label").loc["cell", ["x1", "y1", "x2", "y2"]]
    left, top, width, height = kinds["polygon"].get_bbox()
    assert [left, top, left + width, top + height] == ours.to_numpy()[0].tolist()
