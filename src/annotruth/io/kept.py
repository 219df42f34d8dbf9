"""Masks kept in memory for the length of a job, so that one that needs them several times reads each file once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

import numpy as np

from annotruth.errors import InputError
from annotruth.parallel.memory import available_memory

MAX_KEPT_BYTES = 2**30
"""Of masks that a job keeps, and never more than a quarter of the memory that is free; others are read again."""


class _Kept:
    def __init__(self, limit: int) -> None:
        self._left, self._lock = limit, Lock()
        self._masks: dict[Path, np.ndarray] = {}
        self._seen: dict[Path, tuple[int, int]] = {}

    def get(self, path: Path, read: Callable[[Path], np.ndarray]) -> np.ndarray:
        if path in self._masks:
            return self._masks[path]
        seen = _stamp(path)
        if seen is not None and self._seen.setdefault(path, seen) != seen:
            raise InputError(f"{path} has changed since it was read first. Do it again when nobody writes there.")
        mask = read(path)
        with self._lock:
            if path not in self._masks and mask.nbytes <= self._left:
                self._left -= mask.nbytes
                mask.flags.writeable = False  # others are given the same one
                self._masks[path] = mask
        return mask


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
