"""JSON of labelling tools with something bad in it, which ``import`` reads."""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from PIL import Image
from tests.hostile.attacks import Attack, Attacks
from tests.hostile.exports import command, write_files

LONE = "\ud800"


def all_attacks() -> Attacks:
    yield from bad_json()
    yield from odd_values()
    yield from bad_shapes()


def coco(file_name: Any = "a.png", rater: Any = "ann", category: Any = "cell", **more: Any) -> dict[str, Any]:
    image = {"id": 0, "file_name": file_name, "height": 8, "width": 9}
    cell = {"id": 1, "image_id": 0, "category_id": 1, "segmentation": [[2, 2, 6, 2, 6, 5]], "rater": rater}
    run = {
        "id": 2,
        "image_id": 0,
        "category_id": 1,
        "segmentation": {"size": [8, 9], "counts": [8, 4, 60]},
        "rater": "bob",
    }
    box = {"id": 3, "image_id": 0, "category_id": 1, "segmentation": [], "bbox": [1, 1, 2, 2], "rater": "bob"}
    return {"images": [image], "annotations": [cell, run, box], "categories": [{"id": 1, "name": category}], **more}


def choices(image: Any = "a.png", email: Any = "ann", choice: Any = "cat", people: Any = None) -> list[Any]:
    people = people or [{"id": 7, "email": email}, {"id": 8, "email": "bob"}]
    result = [{"id": "1", "type": "choices", "from_name": "kind", "value": {"choices": [choice]}}]
    return [
        {
            "id": 1,
            "data": {"image": image},
            "annotations": [{"completed_by": person, "result": result} for person in people],
        }
    ]


def studio(kind: str = "rectangle", **value: Any) -> list[Any]:
    """A Label Studio export with a region."""
    shapes: dict[str, Any] = {
        "rectangle": {"x": 10, "y": 20, "width": 30, "height": 40, "rotation": 0},
        "polygon": {"points": [[10, 10], [60, 10], [60, 60]]},
        "ellipse": {"x": 50, "y": 50, "radiusX": 20, "radiusY": 20},
        "brush": {"format": "rle", "rle": [0, 0, 1, 32, 1, 1, 3, 7, 0, 0]},
    }
    region = {"id": "1", "type": f"{kind}labels", "original_width": 9, "original_height": 8}
    region["value"] = shapes[kind] | {f"{kind}labels": ["cell"]} | value
    work = [{"completed_by": 3, "result": [region]}]
    return [{"id": 1, "data": {"image": "/x/a.png"}, "annotations": work}]


LABELME = {
    "shapes": [{"label": "cell", "points": [[1, 1], [6, 1], [6, 5]], "shape_type": "polygon"}],
    "imagePath": "a.png",
    "imageHeight": 8,
    "imageWidth": 9,
}
VIA = {
    "a": {
        "filename": "a.png",
        "size": 9,
        "regions": [
            {
                "shape_attributes": {"name": "rect", "x": 1, "y": 2, "width": 3, "height": 4},
                "region_attributes": {"type": "cell"},
            }
        ],
    }
}
QUPATH = [
    {
        "type": "Feature",
        "geometry": {"type": "Polygon", "coordinates": [[[1, 1], [5, 1], [5, 4], [1, 1]]]},
        "properties": {"classification": {"name": "cell"}},
    }
]
SUPERVISELY = {
    "size": {"height": 8, "width": 9},
    "objects": [
        {
            "classTitle": "cell",
            "geometryType": "rectangle",
            "labelerLogin": "ann",
            "points": {"exterior": [[1, 1], [4, 2]]},
        }
    ],
}
TOOLS: dict[str, tuple[str, str, Any]] = {
    "COCO": ("ann.json", "", coco()),
    "Label Studio": ("export.json", "", studio()),
    "Label Studio brushes": ("export.json", "", studio("brush")),
    "choices": ("export.json", "export.json", choices()),
    "Labelme": ("ann/a.json", "", LABELME),
    "VIA": ("ann.json", "", VIA),
    "QuPath": ("ann/a.geojson", "", QUPATH),
    "Supervisely": ("ds/ann/a.png.json", "", SUPERVISELY),
    "Argilla": (
        "records.json",
        "records.json",
        [{"id": "r1", "fields": {"text": "t"}, "responses": {"q": [{"value": "x", "user_id": "u"}]}}],
    ),
    "Prodigy": (
        "p.jsonl",
        "p.jsonl",
        {
            "text": "t",
            "label": "A",
            "answer": "accept",
            "_annotator_id": "d-ann",
            "_view_id": "classification",
            "_input_hash": 1,
            "_task_hash": 2,
        },
    ),
    "doccano": ("ann.jsonl", "", {"id": 1, "text": "t", "label": ["pos"], "Comments": []}),
}


def bad_json() -> Attacks:
    for tool, (file, path, content) in TOOLS.items():
        sound = json.dumps(content).encode()
        first = sound.find(b'"', sound.find(b":"))
        texts = {
            "100,000 lists deep": b"[" * 100_000 + sound,
            "deep inside": sound[:-1]
            + b', "x": ' * sound.endswith(b"}")
            + b"," * sound.endswith(b"]")
            + b"[" * 100_000,
            "deep and closed": b"[" * 50_000 + sound + b"]" * 50_000,
            "deep objects": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
            "a number of 5,000 digits": sound.replace(b"1", b"1" * 5000),
            "UTF-16": sound.decode().encode("utf-16"),
            "bytes that are no text": sound[:first] + b'"\xff\xfe' + sound[first + 1 :],
            "two values": sound + sound,
            "a comma too much": sound[:-1] + b"," + sound[-1:],
            "nothing but null": b"null",
            "a key twice": sound.replace(b"{", b'{"id": [], ', 1),
        }
        for name, text in texts.items():
            files = {file: text, **({"a.png": _picture()} if path == "" else {})}
            # Lines may be of any number, and which of two equal keys counts is told by no standard.
            fine = name in ("a key twice", "a number of 5,000 digits") or (name == "two values" and file.endswith("l"))
            yield Attack("JSON", f"{tool}: {name}", partial(write_files, files), command(path), harmless=fine)


ODD: dict[str, Any] = {
    "null": None,
    "a list": [[]],
    "an object": {"a": {}},
    "-1": -1,
    "10^18": 10**18,
    "10^308": 1e308,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "true": True,
    "empty text": "",
    "half a character": LONE,
    "a way out": "../../../executed",
}


def _places(content: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value below the top."""
    inside = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in inside:
        yield (*place, key)
        yield from _places(value, (*place, key))


def odd_values() -> Attacks:
    """Something odd in one place of a sound export; it may be a place that means nothing."""
    for tool, (file, path, content) in TOOLS.items():
        for number, place in enumerate(_places(content)):
            name = list(ODD)[number % len(ODD)]
            changed = copy.deepcopy(content)
            parent = changed
            for key in place[:-1]:
                parent = parent[key]
            parent[place[-1]] = ODD[name]
            files = {file: json.dumps(changed).encode(), **({"a.png": _picture()} if path == "" else {})}
            where = ".".join(map(str, place))
            lay_out = partial(write_files, files)
            yield Attack("odd values", f"{tool}: {where} is {name}", lay_out, command(path), harmless=True)


def bad_shapes() -> Attacks:
    """Run lengths, brushes and polygons that cannot be, of COCO and Label Studio."""
    runs = {"size": [8, 9]}
    for name, drawn in {
        "run longer than the image": runs | {"counts": [8, 4, 600]},
        "run of 10^18": runs | {"counts": [0, 10**18]},
        "runs too short": runs | {"counts": [8, 4, 6]},
        "negative run": runs | {"counts": [8, -4, 68]},
        "runs of fractions": runs | {"counts": [8.5, 4.5, 59]},
        "packed run that is none": runs | {"counts": "\u00e9\u00e9"},
        "packed run without end": runs | {"counts": "o" * 4000},
        "packed run of 4 MB": runs | {"counts": "1" * 4_000_000},
        "a run of another image": {"size": [9, 9], "counts": [81]},
        "a run of 10^9 by 10^9": {"size": [10**9, 10**9], "counts": [10**18]},
        "polygon outside": [[90, 90, 95, 90, 95, 95]],
        "polygon of NaN": [[float("nan")] * 6],
        "polygon of two points": [[1, 1, 2, 2]],
        "polygon of five numbers": [[1, 1, 2, 2, 3]],
    }.items():
        content = coco()
        content["annotations"][1]["segmentation"] = drawn
        yield Attack(
            "COCO", name, partial(write_files, {"ann.json": json.dumps(content).encode()}), command("ann.json")
        )
    for name, points in {
        "keypoints of NaN": [float("nan"), 1, 2],
        "keypoints of words": ["a", "b", 2],
        "half a keypoint": [1, 1, 2, 3],
        "keypoints of records": [{"x": 1}, 1, 2],
        "one keypoint too many": [1, 1, 2, 3, 3, 2],
        "keypoints that are a number": 7,
    }.items():
        content = coco()
        content["categories"][0]["keypoints"] = ["head"]
        content["annotations"][2] |= {"keypoints": points}
        text = json.dumps(content).encode()
        yield Attack("COCO", name, partial(write_files, {"ann.json": text}), command("ann.json"))
    content = coco()
    content["annotations"] += [content["annotations"][2]] * 200_000
    content["annotations"].append({**content["annotations"][2], "image_id": 77})
    lay_out = partial(write_files, {"ann.json": json.dumps(content).encode()})
    yield Attack("COCO", "200,000 boxes and one of no image", lay_out, command("ann.json"))
    for name, export in {
        "brush longer than the image": studio("brush", rle=[0, 0, 255, 255] + [255] * 200),
        "brush of numbers above 255": studio("brush", rle=[999] * 9),
        "brush of nothing": studio("brush", rle=[]),
        "brush of words": studio("brush", rle=["a"]),
        "brush of another format": studio("brush", format="png"),
        "polygon outside": studio("polygon", points=[[200, 200], [300, 200], [300, 300]]),
        "polygon of NaN": studio("polygon", points=[[float("nan"), 1]] * 3),
        "ellipse inside out": studio("ellipse", radiusX=-5),
        "rectangle of NaN": studio(x=float("nan")),
        "rectangle outside": studio(x=500),
        "two labels": studio(rectanglelabels=["a", "b"]),
        "an annotation of itself": _parents("1"),
    }.items():
        lay_out = partial(write_files, {"export.json": json.dumps(export).encode()})
        yield Attack("Label Studio", name, lay_out, command("export.json"))


def _parents(parent: str) -> list[Any]:
    """A region that is its own parent and is related to itself, in an annotation of an annotation of it."""
    export = studio()
    work = export[0]["annotations"][0]
    region = work["result"][0] | {"parentID": parent}
    loop = {"type": "relation", "from_id": "1", "to_id": "1", "direction": "right"}
    work |= {"id": 9, "parent_annotation": 9, "parent_prediction": 9, "result": [region, loop, region]}
    export[0]["annotations"].append({**work, "completed_by": 3})
    return export


def _picture() -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.zeros((8, 9), np.uint8)).save(buffer, "png")
    return buffer.getvalue()
