"""The pixels of the commonest masks in PNG, packed and unpacked without holding Python's lock.

These are planes of one byte per pixel, grey or with a palette, not interlaced. Pillow holds the lock while it packs,
and to be sure of a file with it takes unpacking twice; here most of the time is zlib's and NumPy's, beside which other
threads work. What is not such a plane, or not sound, is left to Pillow.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_HEAD = struct.Struct(">IIBBBBB")
_QUICK = 1  # zlib's level: masks are hardly smaller at others, which take twice the time
_KNOWN = (b"IHDR", b"PLTE", b"IDAT", b"IEND")  # of the chunks that a reader must not skip
_NONE, _SUB, _UP = range(3)  # how the bytes of a row are packed: as they are, less the byte before, less the one above


def chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Name and data of each chunk of a PNG file."""
    place = len(SIGNATURE)
    while place + 8 <= len(content):
        length, name = struct.unpack(">I4s", content[place : place + 8])
        yield name, content[place + 8 : place + 8 + length]
        place += 12 + length


def plane_size(head: bytes) -> tuple[int, int] | None:
    """Height and width, told by the first 33 bytes of a file, of a plane that can be read here; otherwise None."""
    if head[:16] != SIGNATURE + b"\0\0\0\rIHDR" or len(head) < 33 or not _is_intact(b"IHDR", head[16:29], head[29:33]):
        return None
    width, height, depth, colours, packing, filters, interlaced = _HEAD.unpack(head[16:29])
    if depth != 8 or colours not in (0, 3) or packing or filters or interlaced:
        return None
    return (height, width) if 0 < height * width <= (Image.MAX_IMAGE_PIXELS or 0) else None


def unpack_plane(content: bytes) -> np.ndarray | None:
    """Pixels (height, width) uint8 of a file's content, or None if it is left to Pillow.

    Examples
    --------
    >>> unpack_plane(pack_plane(np.arange(6, dtype=np.uint8).reshape(2, 3)))
    array([[0, 1, 2],
           [3, 4, 5]], dtype=uint8)
    >>> unpack_plane(b"something else")
    """
    size = plane_size(content[:33])
    packed = None if size is None else _packed_pixels(content)
    if size is None or packed is None:
        return None
    height, width = size
    unpack = zlib.decompressobj()
    try:
        rows = unpack.decompress(packed, height * (width + 1))
    except zlib.error:
        return None
    if len(rows) < height * (width + 1):
        return None
    filtered = np.frombuffer(rows, dtype=np.uint8).reshape(height, width + 1)
    return _unfilter(filtered[:, 0], filtered[:, 1:].copy())


def pack_plane(pixels: np.ndarray, resolution: bytes | None = None) -> bytes:
    """A file's content of pixels (height, width) uint8; ``resolution`` is the data of a chunk pHYs."""
    height, width = pixels.shape
    rows = np.zeros((height, width + 1), dtype=np.uint8)
    rows[:, 1:] = pixels
    parts = [(b"IHDR", _HEAD.pack(width, height, 8, 0, 0, 0, 0))]
    parts += [] if resolution is None else [(b"pHYs", resolution)]
    parts += [(b"IDAT", zlib.compress(rows.data, _QUICK)), (b"IEND", b"")]
    framed = (struct.pack(">I", len(data)) + name + data + _checksum(name, data) for name, data in parts)
    return SIGNATURE + b"".join(framed)


def resolution_of(path: Path) -> bytes | None:
    """The data of a PNG file's chunk pHYs, which tells pixels per metre, where it has one."""
    with path.open("rb") as file:
        if file.read(len(SIGNATURE)) != SIGNATURE:
            return None
        while len(start := file.read(8)) == 8:
            length, name = struct.unpack(">I4s", start)
            if name == b"pHYs":
                return file.read(length) if length == 9 else None
            if name == b"IDAT":  # behind which it must not stand
                return None
            file.seek(length + 4, 1)
    return None


def _packed_pixels(content: bytes) -> bytes | None:
    """What is in the chunks IDAT, if all chunks are whole, known and end as they should."""
    view, place, found = memoryview(content), len(SIGNATURE), []
    name = b""
    while place + 12 <= len(content):
        length, name = struct.unpack_from(">I4s", content, place)
        data, checksum = view[place + 8 : place + 8 + length], content[place + 8 + length : place + 12 + length]
        must_know = not name[0] & 32  # a capital letter
        if (must_know and name not in _KNOWN) or name == b"acTL" or not _is_intact(name, data, checksum):
            return None
        if name == b"IDAT":
            found.append(data)
        if name == b"IEND":
            break
        place += 12 + length
    return b"".join(found) if name == b"IEND" else None


def _unfilter(filters: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
    """Undo what packing did to the rows (height, width), in place; None for the ways that go byte by byte."""
    if filters.max() > _UP:
        return None
    less_left = filters == _SUB
    if less_left.any():
        rows[less_left] = np.add.accumulate(rows[less_left], axis=1, dtype=np.uint8)
    for row in np.flatnonzero(filters == _UP).tolist():
        if row:  # nothing is above the first
            np.add(rows[row], rows[row - 1], out=rows[row])
    return rows


def _is_intact(name: bytes, data: bytes | memoryview, checksum: bytes) -> bool:
    return _checksum(name, data) == checksum


def _checksum(name: bytes, data: bytes | memoryview) -> bytes:
    return struct.pack(">I", zlib.crc32(data, zlib.crc32(name)))
