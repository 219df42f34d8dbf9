"""What one rater drew on one image, as shapes, and the mask that comes of it.

Shapes stay as they stand in a file until their mask is needed: text and numbers are small, pixels are not.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Protocol

import numpy as np
from PIL import Image

from annotruth.errors import InputError, shorten
from annotruth.io.rasterise import box_ring, polygon_pixels
from annotruth.io.runs import coco_counts, label_studio_mask, unroll_counts


class Shape(Protocol):
    """A class somewhere in an image."""

    @property
    def label(self) -> str:
        """The class's name."""

    def paint(self, mask: np.ndarray, number: int) -> None:
        """Write a class number into a mask (height, width); InputError where the shape is not sound."""


@dataclass(frozen=True)
class Rings:
    """An area, or several, within rings (points, 2) of (x, y) in pixels; a ring inside another is a hole.

    Attributes
    ----------
    rings : the points, or a text "x,y;x,y;…" as CVAT writes them
    """

    label: str
    rings: tuple[np.ndarray | str, ...]

    def points(self) -> list[np.ndarray]:
        """Each ring's points (points, 2) as numbers."""
        return [
            read_points(ring) if isinstance(ring, str) else np.asarray(ring, dtype=np.float64) for ring in self.rings
        ]

    def paint(self, mask: np.ndarray, number: int) -> None:
        rings = self.points()
        window, inside = polygon_pixels(rings, (mask.shape[0], mask.shape[1]))
        if not inside.any() and _is_outside(rings, mask.shape):
            raise InputError(f"a shape of {self.label} lies outside the image. Correct or remove it.")
        mask[window][inside] = number


@dataclass(frozen=True, slots=True)
class Box:
    """An upright box in pixels, as an image may hold a million of them: left, top, right, bottom."""

    label: str
    corners: tuple[float, float, float, float]

    def paint(self, mask: np.ndarray, number: int) -> None:
        if not np.isfinite(self.corners).all():
            raise InputError("a box's corners are not sound numbers. Correct or remove it.")
        left, top, right, bottom = self.corners
        if right <= 0 or bottom <= 0 or left >= mask.shape[1] or top >= mask.shape[0]:
            raise InputError(f"a shape of {self.label} lies outside the image. Correct or remove it.")
        rows = slice(max(ceil(min(top, bottom) - 0.5), 0), max(ceil(max(top, bottom) - 0.5), 0))
        columns = slice(max(ceil(min(left, right) - 0.5), 0), max(ceil(max(left, right) - 0.5), 0))
        mask[rows, columns] = number  # those whose centre is inside


def box_shape(label: str, corners: tuple[float, float, float, float], angle: float = 0.0, about: Any = None) -> Shape:
    """A box (left, top, right, bottom), turned clockwise by degrees about its centre, or about a point (x, y).

    Examples
    --------
    >>> paint_shapes([box_shape("cell", (1, 1, 3, 3))], (4, 4), ("background", "cell")).sum()
    np.uint64(4)
    """
    return Rings(label, (box_ring(*corners, angle, about),)) if angle else Box(label, corners)


@dataclass(frozen=True)
class NoArea:
    """A point, a line or whatever else has no area: masks are made without it, and points may be objects.

    Attributes
    ----------
    kind : what the tool calls it
    points : (x, y) in pixels of every point that stands for itself; none of a line's
    """

    label: str
    kind: str
    points: tuple[tuple[float, float], ...] = ()

    def paint(self, mask: np.ndarray, number: int) -> None:
        """Leave the mask as it is."""


def point_shape(label: str, kind: str, points: Any) -> NoArea:
    """Points (points, 2) of (x, y) in pixels.

    Examples
    --------
    >>> point_shape("cell", "point", [[1, 2]])
    NoArea(label='cell', kind='point', points=((1.0, 2.0),))
    """
    found = np.asarray(points, dtype=np.float64).reshape(-1, 2)
    if not np.isfinite(found).all():
        raise InputError(f"a {kind} of {label} is not at sound numbers. Correct or remove it.")
    return NoArea(label, kind, tuple((float(x), float(y)) for x, y in found))


def kinds_without_area(shapes: Sequence[Shape]) -> list[str]:
    """What the tool calls those of the shapes that have no area, each once."""
    return sorted({shape.kind for shape in shapes if isinstance(shape, NoArea)})


@dataclass(frozen=True)
class Window:
    """Pixels in a part of the image.

    Attributes
    ----------
    left, top : the part's upper left pixel
    size : its (height, width)
    unroll : makes bool pixels of that size of ``code``: a module-level function
    """

    label: str
    left: int
    top: int
    size: tuple[int, int]
    unroll: Callable[[Any, tuple[int, int]], np.ndarray]
    code: Any

    def paint(self, mask: np.ndarray, number: int) -> None:
        height, width = self.size
        if min(self.left, self.top, height - 1, width - 1) < 0 or (
            self.top + height > mask.shape[0] or self.left + width > mask.shape[1]
        ):
            raise InputError(f"a mask of {self.label} reaches outside the image. Correct or remove it.")
        inside = self.unroll(self.code, self.size)
        mask[self.top : self.top + height, self.left : self.left + width][inside] = number


def cvat_pixels(code: str, size: tuple[int, int]) -> np.ndarray:
    """Pixels of CVAT's text, "3, 5, 7": lengths along rows, the first outside."""
    try:
        counts = np.array([int(part) for part in code.split(",")] if code.strip() else [], dtype=np.int64)
    except (ValueError, OverflowError):
        raise InputError("a mask's run lengths are not numbers. Export it anew.") from None
    return unroll_counts(counts, size)


def coco_pixels(code: str | list[int], size: tuple[int, int]) -> np.ndarray:
    """Pixels of COCO's lengths along columns, packed into text or plain."""
    counts = coco_counts(code) if isinstance(code, str) else np.asarray(code)
    return unroll_counts(counts, size, order="F")


def brush_pixels(code: bytes, size: tuple[int, int]) -> np.ndarray:
    """Pixels of Label Studio's brush."""
    return label_studio_mask(code, size)


def png_pixels(code: str, size: tuple[int, int]) -> np.ndarray:
    """Pixels of a PNG in base64: those that are not transparent, or not 0 where nothing can be."""
    try:
        with Image.open(io.BytesIO(base64.b64decode(code)), formats=["PNG"]) as picture:
            if (picture.height, picture.width) != size:
                here, there = (f"{height}×{width}" for height, width in ((picture.height, picture.width), size))
                raise InputError(f"a mask has {here} pixels, where {there} are told of. Export it anew.")
            has_alpha = picture.mode in ("RGBA", "LA")
            return np.array(picture.getchannel("A") if has_alpha else picture.convert("L")) > 0
    except InputError:
        raise
    except Exception as error:  # a damaged picture can raise anything inside its parser
        raise InputError(f"a mask is not a PNG in base64 ({error}). Export it anew.") from error


def plain_pixels(code: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Pixels that are there already."""
    return np.asarray(code, dtype=bool).reshape(size)


def paint_shapes(shapes: Sequence[Shape], size: tuple[int, int], classes: tuple[str, ...]) -> np.ndarray:
    """Paint shapes over each other, the last on top, on a background of class 0: (height, width) uint8.

    Shapes without an area are passed over. If there are no others the drawing is refused: it is not background alone,
    as somebody marked something there.

    Examples
    --------
    >>> square = np.array([[1, 1], [3, 1], [3, 3], [1, 3]])
    >>> paint_shapes([Rings("cell", (square,))], (4, 4), ("background", "cell")).sum()
    np.uint64(4)
    """
    areas = [shape for shape in shapes if not isinstance(shape, NoArea)]
    if shapes and not areas:
        kinds = shorten(kinds_without_area(shapes))
        raise InputError(f"there are only shapes without an area ({kinds}). Draw areas, or remove them.")
    mask = np.zeros(size, dtype=np.uint8)
    numbers = {name: number for number, name in enumerate(classes)}
    for shape in areas:
        shape.paint(mask, numbers[shape.label])
    return mask


def read_points(text: str) -> np.ndarray:
    """Points (points, 2) of a text "x,y;x,y;…" as CVAT writes it."""
    try:
        return np.array(text.replace(";", ",").split(","), dtype=np.float64).reshape(-1, 2)
    except ValueError:
        raise InputError(f"the points {text[:40]!r} are not x,y;x,y;… Export them anew.") from None


def _is_outside(rings: Sequence[np.ndarray], size: tuple[int, ...]) -> bool:
    points = np.concatenate(rings)
    lowest, highest = points.min(axis=0), points.max(axis=0)
    return bool((highest <= 0).any() or lowest[0] >= size[1] or lowest[1] >= size[0])
