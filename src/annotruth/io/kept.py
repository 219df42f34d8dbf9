"""Masks kept in memory for the length of a job, so that one that needs them several times reads each file once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from threading import Lock
from typing import Literal

import numpy as np

from annotruth.errors import InputError
from annotruth.parallel.memory import available_memory

MAX_KEPT_BYTES = 2**30
"""Of masks that a job keeps, and never more than a quarter of the memory that is free; others are read again."""
_FOR_BITS = 8  # that part of it is for masks of two values, of which it holds eight times as many


class _Kept:
    def __init__(self, limit: int) -> None:
        self._left_for_bits = limit // _FOR_BITS
        self._left, self._lock = limit - self._left_for_bits, Lock()
        self._masks: dict[Path, np.ndarray | _Bits] = {}
        self._seen: dict[Path, tuple[int, int]] = {}

    def get(self, path: Path, read: Callable[[Path], np.ndarray]) -> np.ndarray:
        kept = self._masks.get(path)
        if kept is not None:
            return kept.unpack() if isinstance(kept, _Bits) else kept
        seen = _stamp(path)
        if seen is not None and self._seen.setdefault(path, seen) != seen:
            raise InputError(f"{path} has changed since it was read first. Do it again when nobody writes there.")
        mask = read(path)
        self._keep(path, mask)
        return mask

    def _keep(self, path: Path, mask: np.ndarray) -> None:
        with self._lock:
            fits = mask.nbytes <= self._left
            self._left -= mask.nbytes if fits else 0
        if fits:
            mask.flags.writeable = False  # others are given the same one
            self._masks[path] = mask
        elif mask.size // 8 < self._left_for_bits and (bits := _Bits.pack(mask)) is not None:
            with self._lock:
                if bits.packed.nbytes <= self._left_for_bits:
                    self._left_for_bits -= bits.packed.nbytes
                    self._masks[path] = bits


@dataclass(frozen=True)
class _Bits:
    """A mask of 0 and one other value, a bit for each pixel in the order in which they lie in memory."""

    packed: np.ndarray
    value: int
    shape: tuple[int, ...]
    order: Literal["C", "F"]

    @classmethod
    def pack(cls, mask: np.ndarray) -> _Bits | None:
        """Pack a mask of bytes; None for any other."""
        if mask.dtype != np.uint8 or not (mask.flags.c_contiguous or mask.flags.f_contiguous):
            return None
        flat, value = mask.ravel(order="K"), mask.max()
        if not ((flat == 0) | (flat == value)).all():
            return None
        return cls(np.packbits(flat), int(value), mask.shape, "C" if mask.flags.c_contiguous else "F")

    def unpack(self) -> np.ndarray:
        flat = np.unpackbits(self.packed, count=prod(self.shape))
        flat *= np.uint8(self.value)
        return flat.reshape(self.shape, order=self.order)


def _stamp(path: Path) -> tuple[int, int] | None:
    """What changes when a file is written anew; None where there is no file, which reading will complain of."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


_active: list[_Kept] = []


@contextmanager
def keeping_masks(limit: int | None = None) -> Iterator[None]:
    """Keep masks that are read in the block, by any thread of this process, up to ``limit`` bytes in all.

    A file that is read again, not having been kept, must be the same as before.

    Examples
    --------
    >>> with keeping_masks():
    ...     first = read_once(Path("a.npy"), lambda path: np.zeros(4))
    ...     read_once(Path("a.npy"), lambda path: np.ones(4)) is first
    True
    """
    kept = _Kept(min(MAX_KEPT_BYTES, available_memory() // 4) if limit is None else limit)
    _active.append(kept)
    try:
        yield
    finally:
        _active.remove(kept)


def read_once(path: Path, read: Callable[[Path], np.ndarray]) -> np.ndarray:
    """Give a file's mask, kept from an earlier time or read now."""
    return _active[-1].get(path, read) if _active else read(path)
