"""Supervisely: a project folder, meta.json and <data set>/ann/<image>.json; who drew an object stands with it."""

from __future__ import annotations

import base64
import binascii
import io
import zlib
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from annotruth.errors import InputError
from annotruth.io.contents import Contents
from annotruth.io.drawn import MANY, Drawn, files_at, parsing, peek_json, read_json
from annotruth.io.problems import Problem, Report
from annotruth.io.shapes import Box, NoArea, Rings, Shape, Window, point_shape
from annotruth.io.sources import register
from annotruth.io.sources.imports import ImportSource

MAX_BYTES = 2**28
"""Of an unpacked bitmap."""


@register
class Supervisely(ImportSource):
    """meta.json, <data set>/ann/<image>.json, <data set>/img/<image>; coordinates are pixels' numbers."""

    name = "Supervisely project"
    key = "supervisely"
    description = "a project folder of Supervisely: bitmaps, polygons with holes, rectangles"
    kind = "masks"
    holds = ("image", "mask", "polygon", "box", "point")
    identity = "labelerLogin of each object; the folder's name where there is none"
    inputs = ("images", "duplicates")

    def matches(self, path: Path) -> bool:
        return path.is_dir() and any(_is_annotation(peek_json(file)) for file in files_at(path, "ann/*.json")[:MANY])

    def read(self, path: Path, report: Report, **inputs: Any) -> Contents:
        drawn = Drawn(path, report, **inputs)
        bare = []
        for file in files_at(path, "ann/*.json"):
            name = file.name.removesuffix(".json")
            with parsing(report, file, name):
                content = read_json(file)
                if not _is_annotation(content):
                    continue
                image = (file.parent.parent / "img" / name).relative_to(path).as_posix()
                size = (int(content["size"]["height"]), int(content["size"]["width"]))
                by_rater: dict[str, list[dict[str, Any]]] = defaultdict(list)
                for each in content["objects"]:
                    by_rater[str(each.get("labelerLogin") or path.name)].append(each)
                if not by_rater:
                    bare.append(name)
                for rater, objects in by_rater.items():
                    with parsing(report, file, name, rater):
                        drawn.add(file, image, size, rater, rater, [_shape(each) for each in objects])
        if bare:
            message = f"nothing is drawn on {len(bare)} of the images, and nobody knows who looked at them."
            report(Problem("warning", path, None, None, message, "They are left out."))
        return drawn.contents()


def _is_annotation(content: Any) -> bool:
    return (
        isinstance(content, dict) and isinstance(content.get("size"), dict) and isinstance(content.get("objects"), list)
    )


def _shape(content: dict[str, Any]) -> Shape:
    label, kind = str(content["classTitle"]), content.get("geometryType")
    if kind == "bitmap":
        bitmap = content["bitmap"]
        left, top = map(int, bitmap["origin"])
        mask = _unpack(bitmap["data"])
        return Window(label, left, top, (mask.shape[0], mask.shape[1]), unpack_pixels, bitmap["data"])
    if kind not in ("polygon", "rectangle"):
        is_point = kind == "point"  # which names a pixel, whose centre lies half on
        points = np.array(content["points"]["exterior"], dtype=np.float64) + 0.5 if is_point else ()
        return point_shape(label, "point", points) if is_point else NoArea(label, str(kind))
    exterior = np.array(content["points"]["exterior"], dtype=np.float64).reshape(-1, 2)
    if kind == "rectangle":
        (left, top), (right, bottom) = exterior.min(axis=0).tolist(), exterior.max(axis=0).tolist()
        return Box(label, (left, top, right + 1, bottom + 1))  # the last pixel is part of it
    holes = [np.array(ring, dtype=np.float64).reshape(-1, 2) for ring in content["points"].get("interior") or []]
    return Rings(label, tuple(ring + 0.5 for ring in (exterior, *holes)))


def unpack_pixels(code: str, size: tuple[int, int]) -> np.ndarray:
    """Pixels of a bitmap: a PNG, deflated, in base64."""
    mask = _unpack(code)
    if mask.shape != size:
        raise InputError("a bitmap has changed its size. Export it anew.")
    return mask


def _unpack(code: str) -> np.ndarray:
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.b64decode(code), MAX_BYTES)
        if unpacker.unconsumed_tail:
            raise InputError(f"a bitmap holds more than {MAX_BYTES >> 20} MB. Do not trust it.")
        with Image.open(io.BytesIO(data), formats=["PNG"]) as picture:
            has_alpha = picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info
            return np.array(picture.convert("RGBA"))[..., 3] > 0 if has_alpha else np.array(picture.convert("L")) > 0
    except InputError:
        raise
    except (
        zlib.error,
        binascii.Error,
        TypeError,
        ValueError,
        OSError,
        SyntaxError,
        Image.DecompressionBombError,
    ) as error:
        raise InputError(f"a bitmap cannot be unpacked ({error}). Export it anew.") from error
