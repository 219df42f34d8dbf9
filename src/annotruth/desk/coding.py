"""Labels on their way between server and browser, and into the log: runs of equal values, which masks have few of."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from binascii import Error as BadBase64
from collections.abc import Mapping
from typing import Any

import numpy as np

from annotruth.errors import InputError

_HEAD = 4  # bytes that tell how many runs there are


def encode_runs(labels: np.ndarray) -> bytes:
    """Labels (…) uint8, read row by row, as a number of runs, where each begins (both uint32) and its value (uint8).

    Examples
    --------
    >>> code = encode_runs(np.array([[0, 0, 7], [7, 7, 0]], dtype=np.uint8))
    >>> decode_runs(code, 6)
    array([0, 0, 7, 7, 7, 0], dtype=uint8)
    >>> len(code)
    19
    """
    flat = np.ascontiguousarray(labels, dtype=np.uint8).reshape(-1)
    starts = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    starts = np.concatenate([np.zeros(min(1, flat.size), dtype=np.int64), starts])
    return np.array([len(starts)], "<u4").tobytes() + starts.astype("<u4").tobytes() + flat[starts].tobytes()


def decode_runs(code: bytes, size: int) -> np.ndarray:
    """The labels (size,) of :func:`encode_runs`; anything that is not such a code of so many labels is refused."""
    count = int.from_bytes(code[:_HEAD], "little")
    if len(code) < _HEAD or len(code) != _HEAD + 5 * count or (count == 0) != (size == 0):
        raise InputError("The labels that were sent are cut off, or not of this case.")
    starts = np.frombuffer(code, "<u4", count, _HEAD).astype(np.int64)
    values = np.frombuffer(code, np.uint8, count, _HEAD + 4 * count)
    if count and (starts[0] != 0 or starts[-1] >= size or (np.diff(starts) <= 0).any()):
        raise InputError("The labels that were sent are of another size than this case.")
    return np.repeat(values, np.diff(np.append(starts, size)))


def to_text(labels: np.ndarray) -> str:
    """Labels as text for a line of the log: runs, compressed, in base 64.

    Examples
    --------
    >>> from_text(to_text(np.eye(2, dtype=np.uint8)), (2, 2))
    array([[1, 0],
           [0, 1]], dtype=uint8)
    """
    return b64encode(zlib.compress(encode_runs(labels), 6)).decode("ascii")


def from_text(text: str, shape: tuple[int, ...]) -> np.ndarray:
    """The labels (*shape) uint8 of :func:`to_text`."""
    size = int(np.prod(shape, dtype=np.int64))
    most = _HEAD + 5 * size
    try:
        unpack = zlib.decompressobj()
        code = unpack.decompress(b64decode(text, validate=True), most + 1)  # a small text may unpack to a huge one
    except (BadBase64, ValueError, zlib.error):
        raise InputError("a mask in the log is damaged.") from None
    return decode_runs(code, size).reshape(shape)


def bundle(about: Mapping[str, Any], parts: list[bytes]) -> bytes:
    """Several codes in one answer: the length of a head, the head (JSON, with each part's length), and the parts.

    Examples
    --------
    >>> bundle({"names": ["a"]}, [b"xyz"])[4:]
    b'{"names": ["a"], "lengths": [3]}xyz'
    """
    head = json.dumps({**about, "lengths": [len(part) for part in parts]}).encode()
    return b"".join([len(head).to_bytes(_HEAD, "little"), head, *parts])
