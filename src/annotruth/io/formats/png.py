"""PNG: planes in greyscale, with a palette, or in colour. Transparency is dropped.

A mask in greyscale or with a palette keeps its numbers (a palette's colours only say how they look). As an image,
greyscale is one channel and everything coloured is red, green, blue.
"""

from __future__ import annotations

import struct
import zlib
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from annotruth.errors import InputError
from annotruth.io.formats.header import PICTURES, Header, coloured_mask, no_such_image
from annotruth.io.formats.png_planes import SIGNATURE, chunks, pack_plane, plane_size, resolution_of, unpack_plane

SUFFIXES: tuple[str, ...] = (".png",)
LOSSY = False
_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
"""First column and row, and steps, of the passes of an interlaced picture."""
_QUICK = 1  # zlib's level
_GREY_MODES = ("1", "L", "LA", "I", "I;16", "I;16B")


def mask_header(path: Path) -> Header:
    with path.open("rb") as file:
        size = plane_size(file.read(33))
    if size is not None:
        return Header(size)
    with Image.open(path, formats=PICTURES) as picture:
        _refuse_colours(picture)
        return Header((picture.height, picture.width))


def image_header(path: Path, rank: int) -> Header:
    with Image.open(path, formats=PICTURES) as picture:
        shape = (1 if picture.mode in _GREY_MODES else 3, picture.height, picture.width)
    if rank != 2:
        raise no_such_image(shape[1:], rank)
    return Header(shape)


def read_mask(path: Path) -> np.ndarray:
    content = path.read_bytes()
    plane = unpack_plane(content)
    if plane is not None:
        return plane
    with _open_verified(content) as picture:
        _refuse_colours(picture)
        return np.array(picture.getchannel(0) if picture.mode == "LA" else picture)


def read_image(path: Path, rank: int) -> np.ndarray:
    image_header(path, rank)  # refuses all but planes
    with _open_verified(path.read_bytes()) as picture:
        if picture.mode not in _GREY_MODES:
            return np.ascontiguousarray(np.moveaxis(np.asarray(picture.convert("RGB")), -1, 0))
        return np.array(picture.getchannel(0) if picture.mode == "LA" else picture)[None]


def write_mask(path: Path, labels: np.ndarray, like: Path | None) -> None:
    if labels.ndim != 2:
        raise InputError(f"PNG holds planes, not masks of {labels.ndim} axes. Choose .nii.gz, .tiff or .npy.")
    _save(path, _whole_numbers(labels), like)


def write_image(path: Path, image: np.ndarray, like: Path | None) -> None:
    """Write (1 or 3, height, width) whole numbers; PNG has no others."""
    if image.ndim != 3 or len(image) not in (1, 3):
        size = "×".join(map(str, image.shape))
        raise InputError(f"PNG holds planes of 1 or 3 channels, not {size}. Choose .tiff or .npy.")
    pixels = _whole_numbers(image)
    if len(image) == 3 and pixels.dtype != np.uint8:
        raise InputError("PNG in colour holds numbers up to 255 here. Choose .tiff or .npy.")
    _save(path, pixels[0] if len(image) == 1 else np.moveaxis(pixels, 0, -1), like)


def _open_verified(content: bytes) -> Image.Image:
    """Open a picture whose checksums are right; decoding alone would let flipped bits pass as pixels."""
    try:
        with Image.open(BytesIO(content), formats=PICTURES) as picture:
            picture.verify()
    except UnidentifiedImageError:  # whose words are of the place in memory
        raise UnidentifiedImageError("cannot identify what kind of picture it is") from None
    _refuse_missing_rows(content)
    return Image.open(BytesIO(content), formats=PICTURES)


def _refuse_missing_rows(content: bytes) -> None:
    """Refuse a picture whose packed pixels end early, which decoders take for black ones."""
    parts = list(chunks(content))
    if content[:8] != SIGNATURE or not parts or parts[0][0] != b"IHDR":
        return  # another format under this name, which Pillow knows
    width, height, depth, colours, _, _, interlaced = struct.unpack(">IIBBBBB", parts[0][1])
    bits = depth * {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colours]
    sizes = [(width, height)]
    if interlaced:
        sizes = [(-(-(width - x) // dx), -(-(height - y) // dy)) for x, y, dx, dy in _ADAM7]
    expected = sum(rows * (1 + -(-columns * bits // 8)) for columns, rows in sizes if columns > 0)
    unpack, found = zlib.decompressobj(), 0
    for name, data in parts:
        while name == b"IDAT" and data and found <= expected:
            found += len(unpack.decompress(data, 2**20))
            data = unpack.unconsumed_tail
    found += len(unpack.flush())
    if found < expected:
        raise InputError(f"its packed pixels end after {found} of {expected} bytes. The file is damaged; replace it.")


def _refuse_colours(picture: Image.Image) -> None:
    if picture.mode not in (*_GREY_MODES, "P"):
        raise coloured_mask(len(picture.getbands()))


def _whole_numbers(array: np.ndarray) -> np.ndarray:
    if array.dtype == np.uint8:
        return array
    lowest, highest = array.min(), array.max()
    if lowest < 0 or highest > 65535 or not np.array_equal(array, np.rint(array)):
        raise InputError(
            f"PNG holds whole numbers from 0 to 65535, these run from {lowest:g} to {highest:g}. Choose .tiff or .npy."
        )
    return array.astype(np.uint8 if highest < 256 else np.uint16)


def _save(path: Path, pixels: np.ndarray, like: Path | None) -> None:
    if pixels.ndim == 2 and pixels.dtype == np.uint8:
        path.write_bytes(pack_plane(pixels, None if like is None else resolution_of(like)))
        return
    resolution = None
    if like is not None:
        with Image.open(like, formats=PICTURES) as source:
            resolution = source.info.get("dpi")
    more = {"dpi": resolution} if resolution else {}
    Image.fromarray(np.ascontiguousarray(pixels)).save(path, compress_level=_QUICK, **more)
