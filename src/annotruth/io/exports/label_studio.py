"""Label Studio: tasks with pre-annotations, as brushes or choices, and the labelling interface they go with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from annotruth.io.exports import Export, register_export
from annotruth.io.exports.planes import class_regions, image_name, plane_size
from annotruth.io.problems import Progress
from annotruth.io.results import Result
from annotruth.io.runs import label_studio_code
from annotruth.io.writing import atomic

NAME, OBJECT = "label", "image"
"""Of the control and of the image in the labelling interface."""


@register_export
class LabelStudio(Export):
    """predictions.json, to be imported into a project whose labelling interface is label_config.xml."""

    key = "label-studio"
    description = "Label Studio's tasks with pre-annotations: brushes or choices with their probability"
    kinds = ("masks", "labels")

    def write(self, result: Result, folder: Path, progress: Progress, **options: Any) -> None:
        tasks: list[dict[str, Any]] = []
        for answer in result.answers:
            value = {"choices": [answer.label]}
            chosen = {"id": "choice", "from_name": NAME, "to_name": OBJECT, "type": "choices", "value": value}
            tasks.append(_task(answer.origin, result.maker, [chosen], answer.probability))
        for done, item in enumerate(result.items, 1):
            height, width = plane_size(item)
            found = list(class_regions(result, item))
            regions = [
                {
                    "id": f"region_{region.number}", "from_name": NAME, "to_name": OBJECT, "type": "brushlabels",
                    "original_width": width, "original_height": height, "image_rotation": 0, "score": region.score,
                    "value": {
                        "format": "rle", "rle": label_studio_code(region.mask), "brushlabels": [region.label],
                    },
                }
                for region in found
            ]  # fmt: skip
            lowest = min((region.score for region in found), default=None)
            tasks.append(_task(image_name(item), result.maker, regions, lowest))
            progress(done, len(result.items))
        with atomic(folder / "predictions.json") as temporary:
            temporary.write_text(json.dumps(tasks, ensure_ascii=False), encoding="utf-8")
        with atomic(folder / "label_config.xml") as temporary:
            temporary.write_text(_interface(result), encoding="utf-8")


def _task(image: str, maker: str, results: list[dict[str, Any]], score: float | None) -> dict[str, Any]:
    about = {} if score is None else {"score": round(float(score), 6)}
    return {"data": {OBJECT: image}, "predictions": [{"model_version": maker, "result": results, **about}]}


def _interface(result: Result) -> str:
    tag, value = ("BrushLabels", "Label") if result.kind == "masks" else ("Choices", "Choice")
    shown = result.classes[1:] if result.kind == "masks" else result.classes
    lines = "".join(f"\n    <{value} value={quoteattr(name)}/>" for name in shown)
    head = f'<View>\n  <Image name="{OBJECT}" value="${OBJECT}"/>\n'
    return f'{head}  <{tag} name="{NAME}" toName="{OBJECT}">{lines}\n  </{tag}>\n</View>\n'
