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
from annotruth.parallel.memory import available_memory, keep_freed_from_now_on

MAX_KEPT_BYTES = 2**30
"""Of masks that a job keeps, and never more than a quarter of the memory that is free; others are read again. Those of
two values are kept as bits: to pack and unpack them takes no longer than to be given eight times the memory."""


class _Kept:
    def __init__(self, limit: int) -> None:
        self._left, self._lock = limit, Lock()
        self._masks: dict[Path, np.ndarray | _Bits] = {}
        self._seen: dict[Path, tuple[int, int]] = {}

    @property
    def count(self) -> int:
        return len(self._masks)

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
        kept = _Bits.pack(mask) if mask.size // 8 <= self._left else None
        size = mask.nbytes if kept is None else kept.packed.nbytes
        with self._lock:
            fits = size <= self._left
            self._left -= size if fits else 0
        if fits:
            if kept is None:
                mask.flags.writeable = False  # others are given the same one
            self._masks[path] = mask if kept is None else kept


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
        flat, value = mask.ravel(order="K"), mask.max(initial=0)
        marked = flat == value
        if value and np.count_nonzero(marked) != np.count_nonzero(flat):
            return None
        return cls(np.packbits(marked), int(value), mask.shape, "C" if mask.flags.c_contiguous else "F")

    def unpack(self) -> np.ndarray:
        flat = np.unpackbits(self.packed, count=prod(self.shape))
        if self.value != 1:
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


def usual_limit() -> int:
    """Bytes of masks that a job keeps where nobody says how many."""
    return min(MAX_KEPT_BYTES, available_memory() // 4)


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
    kept = _Kept(usual_limit() if limit is None else limit)
    _active.append(kept)
    try:
        yield
    finally:
        _active.remove(kept)


def read_once(path: Path, read: Callable[[Path], np.ndarray]) -> np.ndarray:
    """Give a file's mask, kept from an earlier time or read now."""
    return _active[-1].get(path, read) if _active else read(path)


def keep_masks_from_now_on(limit: int) -> None:
    """Keep masks until the end of this process, which does nothing but the job at hand."""
    if not _active:
        keep_freed_from_now_on()
        _active.append(_Kept(limit))


def has_kept(least: int) -> bool:
    """Whether so many masks at least are kept by now."""
    return bool(_active) and _active[-1].count >= least
