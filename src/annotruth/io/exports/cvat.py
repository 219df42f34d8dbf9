"""CVAT: annotations.xml for images 1.1, one mask per class and image, or a tag."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from annotruth.io.exports import Export, register_export
from annotruth.io.exports.planes import class_regions, image_name, plane_size
from annotruth.io.problems import Progress
from annotruth.io.results import Result
from annotruth.io.runs import roll_counts
from annotruth.io.writing import atomic


@register_export
class Cvat(Export):
    """<annotations> with <mask> in run lengths, or <tag>; upload it to a task with images of the same names."""

    key = "cvat"
    description = "CVAT's XML for images 1.1: a mask per class and image, or tags"
    kinds = ("masks", "labels")

    def write(self, result: Result, folder: Path, progress: Progress, **options: Any) -> None:
        shown = result.classes[1:] if result.kind == "masks" else result.classes
        with atomic(folder / "annotations.xml") as temporary, temporary.open("w", encoding="utf-8") as file:
            file.write('<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n  <version>1.1</version>\n')
            labels = "".join(f"<label><name>{escape(name)}</name></label>" for name in shown)
            file.write(f"  <meta><task><name>{escape(result.maker)}</name><labels>{labels}</labels></task></meta>\n")
            for number, answer in enumerate(result.answers):
                tag = f'<tag label={quoteattr(answer.label)} source="auto"></tag>'
                file.write(f'  <image id="{number}" name={quoteattr(answer.origin)}>{tag}</image>\n')
            for number, item in enumerate(result.items):
                height, width = plane_size(item)
                size = f'width="{width}" height="{height}"'
                file.write(f'  <image id="{number}" name={quoteattr(image_name(item))} {size}>\n')
                for region in class_regions(result, item):
                    file.write(f"    {_mask(region.label, region.mask)}\n")
                file.write("  </image>\n")
                progress(number + 1, len(result.items))
            file.write("</annotations>\n")


def _mask(label: str, mask: np.ndarray) -> str:
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    top, bottom, left, right = rows[0], rows[-1] + 1, columns[0], columns[-1] + 1
    code = ", ".join(map(str, roll_counts(mask[top:bottom, left:right])))
    place = f'left="{left}" top="{top}" width="{right - left}" height="{bottom - top}"'
    return f'<mask label={quoteattr(label)} source="auto" occluded="0" rle="{code}" {place} z_order="0"></mask>'
