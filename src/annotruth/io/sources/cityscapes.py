"""Cityscapes: street scenes with fine and with coarse annotations, the 19 classes that are evaluated."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from annotruth.errors import InputError
from annotruth.io.contents import Contents, Mask
from annotruth.io.drawn import read_json
from annotruth.io.layouts import Case, Drawing, find_named, has_name, make_items, value_rule
from annotruth.io.masks.reading import unnamed
from annotruth.io.problems import Problem, Report
from annotruth.io.rasterise import polygon_pixels
from annotruth.io.sources import register
from annotruth.io.sources.imports import ImportSource
from annotruth.validation import MISSING_PIXEL

MASK = r"(.+)_gt(Fine|Coarse)_(labelIds\.png|polygons\.json)"
IDS = {
    "road": 7, "sidewalk": 8, "building": 11, "wall": 12, "fence": 13, "pole": 17, "traffic light": 19,
    "traffic sign": 20, "vegetation": 21, "terrain": 22, "sky": 23, "person": 24, "rider": 25, "car": 26, "truck": 27,
    "bus": 28, "train": 31, "motorcycle": 32, "bicycle": 33,
}  # fmt: skip
HIGHEST_ID = 33
MAX_PIXELS = 2**27
"""Of one image; those of Cityscapes have 2 million."""


@register
class Cityscapes(ImportSource):
    """leftImg8bit/<split>/<city>/<name>_leftImg8bit.png, gtFine/… and gtCoarse/…_labelIds.png or …_polygons.json."""

    name = "Cityscapes folder"
    key = "cityscapes"
    description = "Cityscapes' leftImg8bit with gtFine and gtCoarse"
    kind = "masks"
    holds = ("image", "mask", "polygon")
    identity = "fine or coarse"

    def matches(self, path: Path) -> bool:
        return has_name(path, MASK)

    def read(self, path: Path, report: Report, **_: Any) -> Contents:
        images = {match[1]: file for file, match in find_named(path, r"(.+)_leftImg8bit\.png").items()}
        numbers = dict.fromkeys([*range(HIGHEST_ID + 1), MISSING_PIXEL], MISSING_PIXEL)  # 255 is a number plate
        numbers |= {value: number for number, value in enumerate(IDS.values())}
        rule = value_rule(tuple(IDS), numbers)
        cases: dict[str, Case] = {}
        bare = 0
        for file, match in find_named(path, MASK).items():
            name, rater = match[1], match[2].lower()
            if images and name not in images:
                bare += 1
                continue
            case = cases.setdefault(name, Case(name, (images[name],) if name in images else ()))
            if match[3].endswith(".png"):
                case.masks[rater] = Drawing.of(file, rule)
            elif not isinstance(case.masks.get(rater), Drawing):
                case.masks[rater] = Mask(file, partial(read_polygons, file))
                if not case.images:
                    case.shape = read_polygons(file).shape
        if bare:
            message = f"{bare} annotations are left out: there is no image of theirs."
            report(Problem("warning", path, None, None, message))
        for case in cases.values():
            case.group = case.name.partition("_")[0]  # the city
        note = "Pixels of none of the 19 classes that are evaluated count as not labelled; splits keep cities whole."
        return Contents(tuple(IDS), make_items(list(cases.values()), 2, report), notes=[note])


def read_polygons(file: Path) -> np.ndarray:
    """Class numbers (height, width) of a polygon file, later polygons on top, 255 = none of the classes."""
    with unnamed(file):
        return _paint(file)


def _paint(file: Path) -> np.ndarray:
    content = read_json(file)
    try:
        size = (int(content["imgHeight"]), int(content["imgWidth"]))
        if min(size) < 1 or size[0] * size[1] > MAX_PIXELS:
            raise InputError(f"an image of {size[0]}×{size[1]} pixels cannot be. Download it anew.")
        mask = np.full(size, MISSING_PIXEL, dtype=np.uint8)
        numbers = {name: number for number, name in enumerate(IDS)}
        for drawn in content["objects"]:
            if not drawn.get("deleted"):
                window, inside = polygon_pixels([np.array(drawn["polygon"], dtype=float)], mask.shape)
                name = drawn["label"].removesuffix("group")
                mask[window][inside] = numbers.get(name, MISSING_PIXEL)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, IndexError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{file}: this is not as Cityscapes writes it ({error}). Download it anew.") from error
    return mask
