"""JPEG: pictures in grey or in colour, turned upright as the camera noted. Read only, and never as masks.

Saving as JPEG changes pixel values a little, which pictures bear and class numbers do not.
"""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import numpy as np
from PIL import ExifTags, Image, ImageOps

from annotruth.errors import InputError
from annotruth.io.formats.header import Header, no_such_image

SUFFIXES: tuple[str, ...] = (".jpg", ".jpeg")
LOSSY = True
_SIDEWAYS_ORIENTATIONS = (5, 6, 7, 8)


def image_header(path: Path, rank: int) -> Header:
    with _open(path) as picture:
        height, width = picture.height, picture.width
        if picture.getexif().get(ExifTags.Base.Orientation) in _SIDEWAYS_ORIENTATIONS:
            height, width = width, height
        channels = 1 if picture.mode == "L" else 3
    if rank != 2:
        raise no_such_image((height, width), rank)
    return Header((channels, height, width))


def read_image(path: Path, rank: int) -> np.ndarray:
    image_header(path, rank)  # refuses all but planes
    with _open(path) as picture:
        upright = ImageOps.exif_transpose(picture)
        if upright.mode == "L":
            return np.array(upright)[None]
        return np.ascontiguousarray(np.moveaxis(np.asarray(upright.convert("RGB")), -1, 0))


def mask_header(path: Path) -> Header:
    _refuse_mask()


def read_mask(path: Path) -> np.ndarray:
    _refuse_mask()


def write_mask(path: Path, labels: np.ndarray, like: Path | None) -> None:
    _refuse_mask()


def write_image(path: Path, image: np.ndarray, like: Path | None) -> None:
    raise InputError("Images are not written as JPEG, which would change their values. Choose .png, .tiff or .npy.")


def _open(path: Path) -> Image.Image:
    return Image.open(path, formats=("JPEG",))


def _refuse_mask() -> NoReturn:
    raise InputError(
        "a mask cannot be a JPEG, which changes pixel values and so class numbers. "
        "Save it as .png, .tiff, .nii.gz or .npy, from the original where there is one: converting brings nothing back."
    )
