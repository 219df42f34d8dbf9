"""How a case is laid before the curator: slices of volumes, upright where the file tells, and pixels in few bytes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from annotruth.data.annotations import Annotations

_SAMPLE = 200_000
"""Pixels that tell the window to begin with."""


@dataclass(frozen=True)
class View:
    """Which of an array's spatial axes run through slices, down and to the right.

    Attributes
    ----------
    axes : the spatial axes as (slices, rows, columns); (rows, columns) for a flat picture
    flipped : which of these run backwards
    aspect : how much higher than wide a pixel is
    """

    axes: tuple[int, ...]
    flipped: tuple[int, ...] = ()
    aspect: float = 1.0

    def turn(self, array: np.ndarray) -> np.ndarray:
        """An array (…, *spatial) as it is shown: (…, slices, rows, columns), with one slice of a flat picture.

        Examples
        --------
        >>> view = View((2, 1, 0), flipped=(1,))
        >>> view.turn(np.zeros((5, 4, 3))).shape
        (3, 4, 5)
        >>> volume = np.arange(60).reshape(5, 4, 3)
        >>> bool((view.turn_back(view.turn(volume)) == volume).all())
        True
        """
        first = array.ndim - len(self.axes)
        turned = np.transpose(array, (*range(first), *(first + axis for axis in self.axes)))
        turned = np.flip(turned, tuple(first + place for place in self.flipped))
        return turned if len(self.axes) == 3 else turned[..., None, :, :]

    def turn_back(self, shown: np.ndarray) -> np.ndarray:
        """What was shown (slices, rows, columns) as (*spatial)."""
        turned = shown if len(self.axes) == 3 else shown[0]
        return np.transpose(np.flip(turned, self.flipped), np.argsort(self.axes))


def view_of(annotations: Annotations, index: int, shape: tuple[int, ...]) -> View:
    """The view of a case: slices run along the shortest axis, as in the report.

    Of a NIfTI volume the patient's left is on the right, and what is in front, or above, is on top.
    """
    spacing = annotations.spacing(index) or (1.0,) * len(shape)
    source = None if annotations.sources is None else annotations.sources[index]
    slices = (len(shape) - 1 - int(np.argmin(shape[::-1])),) if len(shape) == 3 else ()
    plane = tuple(axis for axis in range(len(shape)) if axis not in slices)
    flipped: tuple[int, ...] = ()
    codes = _orientation(source) if len(shape) == 3 else None
    if codes is not None:
        plane = tuple(sorted(plane, key=lambda axis: -codes[axis][0]))  # down: the later axis of right, front, top
        flipped = tuple(place for place, axis in enumerate(plane, start=1) if codes[axis][1] > 0)
    return View((*slices, *plane), flipped, float(spacing[plane[0]] / spacing[plane[1]]))


def _orientation(source: Path | None) -> list[tuple[int, int]] | None:
    """For each axis of a NIfTI file: the axis of the patient (right, front, top) that it follows, and which way."""
    if source is None or not source.name.lower().endswith((".nii", ".nii.gz")):
        return None
    import nibabel  # not everybody has such files, and it takes its time

    codes = nibabel.orientations.io_orientation(nibabel.load(source).affine)  # type: ignore[attr-defined]
    if np.isnan(codes).any():
        return None
    return [(int(axis), int(way)) for axis, way in codes]


@dataclass(frozen=True)
class Picture:
    """An image as the browser takes it.

    Attributes
    ----------
    pixels : (channels, slices, rows, columns) uint8 or uint16; colours (1, slices, rows, columns, 3) uint8
    low, high : the values that the lowest and highest number stand for
    window : the values that are black and white to begin with
    """

    pixels: np.ndarray
    low: float
    high: float
    window: tuple[float, float]

    @property
    def is_colour(self) -> bool:
        return self.pixels.ndim == 5

    def about(self) -> dict[str, Any]:
        """What the browser must know to show it."""
        return {
            "channels": len(self.pixels), "colour": self.is_colour, "bytes": self.pixels.dtype.itemsize,
            "low": self.low, "high": self.high, "window": list(self.window),
        }  # fmt: skip


def picture_of(image: np.ndarray, view: View) -> Picture:
    """An image (channels, *spatial) with 256 levels where it has whole numbers up to 255, else with 65,536.

    Examples
    --------
    >>> found = picture_of(np.array([[[0.0, 0.5], [1.0, 2.0]]]), View((0, 1)))
    >>> found.pixels.ravel().tolist(), found.high
    ([0, 16384, 32768, 65535], 2.0)
    """
    low, high = float(image.min()), float(image.max())
    sample = image.reshape(-1)[:: max(1, image.size // _SAMPLE)]
    window = tuple(float(value) for value in np.percentile(sample, (0.5, 99.5)))
    if window[1] <= window[0]:
        window = (low, high if high > low else low + 1)
    if low >= 0 and high <= 255 and bool((sample == np.rint(sample)).all()):
        turned = view.turn(image.astype(np.uint8))
        if len(image) == 3:
            return Picture(np.moveaxis(turned, 0, -1)[None], 0.0, 255.0, (0.0, 255.0))
        return Picture(turned, 0.0, 255.0, (window[0], window[1]))
    scale = (high - low) or 1.0
    if len(image) == 3 and low >= 0 and high <= 1:
        return Picture(np.moveaxis(view.turn((255 * image).astype(np.uint8)), 0, -1)[None], 0.0, 1.0, (0.0, 1.0))
    levels = np.rint((image - low) * (65535 / scale)).astype(np.uint16)
    return Picture(view.turn(levels), low, low + scale, (window[0], window[1]))
