"""BMP, GIF, PPM and PGM (also gzipped): planes in grey, with a palette or in colour. Read only.

Older public data sets keep masks and photographs so. What follows from them is written as PNG, which holds the same.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NoReturn, cast

import numpy as np
from PIL import Image, UnidentifiedImageError

from annotruth.errors import InputError
from annotruth.io.formats.header import Header, coloured_mask, no_such_image

SUFFIXES: tuple[str, ...] = (".bmp", ".gif", ".ppm", ".pgm", ".ppm.gz", ".pgm.gz")
LOSSY = True
"""Values are kept, but nothing is written in these formats."""
GREY_MODES = ("1", "L", "I", "I;16")


def mask_header(path: Path) -> Header:
    with open_picture(path) as picture:
        _refuse_colours(picture)
        return Header((picture.height, picture.width))


def image_header(path: Path, rank: int) -> Header:
    with open_picture(path) as picture:
        shape = (1 if picture.mode in GREY_MODES else 3, picture.height, picture.width)
    if rank != 2:
        raise no_such_image(shape[1:], rank)
    return Header(shape)


def read_mask(path: Path) -> np.ndarray:
    with open_picture(path) as picture:
        _refuse_colours(picture)
        return np.array(picture)


def read_image(path: Path, rank: int) -> np.ndarray:
    image_header(path, rank)  # refuses all but planes
    with open_picture(path) as picture:
        if picture.mode in GREY_MODES:
            return np.array(picture)[None]
        return np.ascontiguousarray(np.moveaxis(np.asarray(picture.convert("RGB")), -1, 0))


def write_mask(path: Path, labels: np.ndarray, like: Path | None) -> None:
    _refuse_writing()


def write_image(path: Path, image: np.ndarray, like: Path | None) -> None:
    _refuse_writing()


@contextmanager
def open_picture(path: Path) -> Iterator[Image.Image]:
    """Open a picture, also one that is gzipped."""
    formats = ("BMP", "GIF", "PPM")
    if path.name.lower().endswith(".gz"):
        with gzip.open(path) as file:
            try:
                picture = Image.open(cast(IO[bytes], file), formats=formats)
            except UnidentifiedImageError:  # whose message names a place in memory
                raise InputError("there is no picture of a known format in the file. Replace it.") from None
            with picture:
                yield picture
    else:
        with Image.open(path, formats=formats) as picture:
            yield picture


def _refuse_colours(picture: Image.Image) -> None:
    if picture.mode not in (*GREY_MODES, "P"):
        raise coloured_mask(len(picture.getbands()))


def _refuse_writing() -> NoReturn:
    raise InputError("BMP, GIF, PPM and PGM are only read. Choose .png, .tiff or .npy.")
