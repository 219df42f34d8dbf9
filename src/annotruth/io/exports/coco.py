"""COCO: annotations.json with run lengths, one annotation per class and image."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from annotruth.io.exports import Export, register_export
from annotruth.io.exports.planes import class_regions, image_name, plane_size
from annotruth.io.problems import Progress
from annotruth.io.results import Result
from annotruth.io.runs import coco_code, roll_counts
from annotruth.io.writing import atomic


@register_export
class Coco(Export):
    """{"images": …, "annotations": …, "categories": …}; ``score`` is a class's mean probability in its region."""

    key = "coco"
    description = "COCO instances in JSON, one annotation per class and image, in run lengths"

    def write(self, result: Result, folder: Path, progress: Progress, **options: Any) -> None:
        images: list[dict[str, Any]] = []
        annotations: list[dict[str, Any]] = []
        for done, item in enumerate(result.items, 1):
            height, width = plane_size(item)
            images.append({"id": done, "file_name": image_name(item), "height": height, "width": width})
            for region in class_regions(result, item):
                rows, columns = (np.flatnonzero(region.mask.any(axis=axis)) for axis in (1, 0))
                box = [columns[0], rows[0], columns[-1] - columns[0] + 1, rows[-1] - rows[0] + 1]
                code = {"size": [height, width], "counts": coco_code(roll_counts(region.mask, order="F"))}
                about = {"id": len(annotations) + 1, "image_id": done, "category_id": region.number, "iscrowd": 0}
                area, sides = int(region.mask.sum()), [int(side) for side in box]
                annotations.append(about | {"segmentation": code, "area": area, "bbox": sides, "score": region.score})
            progress(done, len(result.items))
        categories = [{"id": n, "name": name, "supercategory": ""} for n, name in enumerate(result.classes) if n]
        content = {"info": {"description": result.maker}, "licenses": [], "images": images}
        content |= {"annotations": annotations, "categories": categories}
        with atomic(folder / "annotations.json") as temporary:
            temporary.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
