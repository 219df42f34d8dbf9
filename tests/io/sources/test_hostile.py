"""Files with odd values in odd places: whatever they hold, nothing but a clear message comes out of reading them."""

from __future__ import annotations

import copy
import json
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from annotruth.errors import InputError
from annotruth.io import check, import_source

ODD: list[Any] = [
    None, -1, 0, 10**18, 1e308, float("nan"), float("inf"), "", "x" * 50, [], {}, [[]], [None], True,
    "../../etc/passwd", "\x00", {"a": 1}, [1, 2], "1e9", -5.5,
]  # fmt: skip
POLYGON = [[1, 1], [5, 1], [5, 4], [1, 1]]
FILES: dict[str, Any] = {
    "coco.json": {
        "images": [{"id": 0, "file_name": "a.png", "height": 8, "width": 9}],
        "annotations": [
            {"id": 1, "image_id": 0, "category_id": 1, "segmentation": [[2, 2, 6, 2, 6, 5]]},
            {"id": 2, "image_id": 0, "category_id": 1, "segmentation": {"size": [8, 9], "counts": [8, 4, 60]}},
            {"id": 3, "image_id": 0, "category_id": 1, "segmentation": [], "bbox": [1, 1, 2, 2], "rater": "x"},
        ],
        "categories": [{"id": 1, "name": "cell"}],
    },
    "via.json": {
        "a": {
            "filename": "a.png",
            "regions": [
                {
                    "shape_attributes": {"name": "polygon", "all_points_x": [1, 5, 5], "all_points_y": [1, 1, 4]},
                    "region_attributes": {"kind": "cell"},
                },
                {
                    "shape_attributes": {"name": "ellipse", "cx": 3, "cy": 3, "rx": 2, "ry": 2, "theta": 1.0},
                    "region_attributes": {"kind": "cell"},
                },
            ],
        }
    },
    "a.geojson": {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature", "geometry": {"type": "MultiPolygon", "coordinates": [[POLYGON]]},
                "properties": {"classification": {"name": "cell"}},
            }
        ],
    },
    "a.json": {
        "shapes": [
            {"label": "cell", "points": POLYGON, "shape_type": "polygon"},
            {"label": "cell", "points": [[1, 1], [2, 2]], "shape_type": "mask", "mask": "AAAA"},
            {"label": "cell", "points": [[3, 3], [4, 4]], "shape_type": "circle"},
        ],
        "imagePath": "a.png", "imageHeight": 8, "imageWidth": 9,
    },
    "tasks.json": json.loads((Path(__file__).parent / "label_studio_export.json").read_text()),
    "short.json": json.loads((Path(__file__).parent / "label_studio_min.json").read_text()),
}  # fmt: skip


def places(content: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    inside = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    return [place, *(each for key, value in inside for each in places(value, (*place, key)))]


def spoil(content: Any, chance: random.Random) -> Any:
    """Put something odd into one place, or take it away."""
    content = copy.deepcopy(content)
    *way, last = chance.choice(places(content)[1:])
    parent = content
    for key in way:
        parent = parent[key]
    if chance.random() < 0.2 and isinstance(parent, dict):
        del parent[last]
    else:
        parent[last] = copy.deepcopy(chance.choice(ODD))
    return content


@pytest.mark.parametrize("name", FILES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_odd_values_in_json(name: str, tmp_path: Path, put: Any) -> None:
    put(tmp_path / "x" / "a.png", np.zeros((8, 9), np.uint8))
    file = tmp_path / "x" / "ann" / name
    file.parent.mkdir()
    chance = random.Random(0)
    for number in range(40):
        file.write_text(json.dumps(spoil(FILES[name], chance)))
        problems = check(tmp_path / "x")
        with suppress(InputError):
            imported = import_source(tmp_path / "x", tmp_path / f"cases_{number}")
            assert not imported.skipped or any(problem.severity == "fatal" for problem in problems)


def test_twenty_thousand_objects_on_one_image(tmp_path: Path, cvat: Any) -> None:
    boxes = "".join(
        f'<box label="cell" xtl="{n % 90}" ytl="{n // 900}" xbr="{n % 90 + 1}" ybr="{n // 900 + 1}"/>'
        for n in range(20_000)
    )
    path = cvat(tmp_path / "many.xml").write({"a.png": boxes}, "ann", size=(100, 100))
    assert import_source(path, tmp_path / "cases").raters == {"ann": 1}
