"""COCO's own library: it reads the masks we write, and we read the run lengths it writes, to the pixel."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import annotruth as at
from annotruth.io.exports import export_result


@pytest.fixture
def pycocotools(program: Callable[[str], ModuleType]) -> Any:
    program("pycocotools.mask")
    return program("pycocotools.coco")


def test_it_reads_what_we_write(pycocotools: Any, known: Path, planes: dict[str, np.ndarray], tmp_path: Path) -> None:
    out = export_result(known, tmp_path / "out", "coco")
    read = pycocotools.COCO(str(out / "annotations.json"))
    assert {each["name"] for each in read.loadCats(read.getCatIds())} == {"cell", "wall"}
    for image in read.loadImgs(read.getImgIds()):
        labels = planes[Path(image["file_name"]).stem]
        seen = np.zeros(labels.shape, dtype=np.uint8)
        for annotation in read.loadAnns(read.getAnnIds(imgIds=image["id"])):
            mask = read.annToMask(annotation).astype(bool)
            seen[mask] = annotation["category_id"]
            assert annotation["area"] == mask.sum()
            assert annotation["bbox"] == pycocotools.maskUtils.toBbox(read.annToRLE(annotation)).tolist()
        np.testing.assert_array_equal(seen, labels)


def test_we_read_what_it_writes(pycocotools: Any, planes: dict[str, np.ndarray], tmp_path: Path) -> None:
    images, annotations = [], []
    for number, (name, labels) in enumerate(planes.items()):
        height, width = labels.shape
        images.append({"id": number, "file_name": f"{name}.png", "height": height, "width": width})
        for category in (1, 2):
            code = pycocotools.maskUtils.encode(np.asfortranarray(labels == category).view(np.uint8))
            drawn = {"size": code["size"], "counts": code["counts"].decode()}
            about = {"id": len(annotations), "image_id": number, "category_id": category, "iscrowd": 0}
            annotations.append(about | {"segmentation": drawn})
    categories = [{"id": 1, "name": "cell"}, {"id": 2, "name": "wall"}]
    content = {"images": images, "annotations": annotations, "categories": categories}
    (tmp_path / "ann.json").write_text(json.dumps(content))
    found = at.load(tmp_path / "ann.json")
    for number, labels in enumerate(planes.values()):
        np.testing.assert_array_equal(found.item_masks(number)[0], labels)
