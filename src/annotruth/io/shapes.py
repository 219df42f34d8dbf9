"""What one rater drew on one image, as shapes, and the mask that comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from annotruth.errors import InputError
from annotruth.io.rasterise import polygon_pixels


@dataclass(frozen=True)
class Shape:
    """A class somewhere in an image.

    Attributes
    ----------
    label : the class's name
    rings : (points, 2) each, in pixels (x, y); a ring inside another is a hole
    """

    label: str
    rings: tuple[np.ndarray, ...]

    def paint(self, mask: np.ndarray, number: int) -> None:
        """Write a class number into a mask (height, width)."""
        window, inside = polygon_pixels(self.rings, mask.shape)
        if not inside.any() and _outside(self.rings, mask.shape):
            raise InputError(f"a shape of {self.label} lies outside the image. Correct or remove it.")
        mask[window][inside] = number


def paint_shapes(shapes: Sequence[Shape], size: tuple[int, int], classes: tuple[str, ...]) -> np.ndarray:
    """Paint shapes over each other, the last on top, on a background of class 0: (height, width) uint8.

    Examples
    --------
    >>> square = np.array([[1, 1], [3, 1], [3, 3], [1, 3]])
    >>> paint_shapes([Shape("cell", (square,))], (4, 4), ("background", "cell")).sum()
    np.uint64(4)
    """
    mask = np.zeros(size, dtype=np.uint8)
    numbers = {name: number for number, name in enumerate(classes)}
    for shape in shapes:
        shape.paint(mask, numbers[shape.label])
    return mask


def _outside(rings: Sequence[np.ndarray], size: tuple[int, ...]) -> bool:
    points = np.concatenate([np.asarray(ring, dtype=np.float64) for ring in rings])
    lowest, highest = points.min(axis=0), points.max(axis=0)
    return bool((highest <= 0).any() or lowest[0] >= size[1] or lowest[1] >= size[0])
