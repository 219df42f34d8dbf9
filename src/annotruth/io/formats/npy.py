"""NPY: a NumPy array in a file. Images with one axis more than the masks are channels-first.

Large arrays are memory maps: what is not looked at is not read. Small ones are copied, because every map keeps a file
open, and systems allow a process about a thousand of them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from annotruth.io.formats.header import Header, no_such_image
from annotruth.parallel.threads import READING_HEADERS

SUFFIXES: tuple[str, ...] = (".npy",)
LOSSY = False
MEMORY_MAP_BYTES = 2**26
"""Bytes from which an array stays on disk."""


def mask_header(path: Path) -> Header:
    return Header(_map(path).shape)


def image_header(path: Path, rank: int) -> Header:
    return Header(_with_channels(_map(path), rank).shape)


def read_mask(path: Path) -> np.ndarray:
    return _in_memory_if_small(_map(path))


def read_image(path: Path, rank: int) -> np.ndarray:
    return _in_memory_if_small(_with_channels(_map(path), rank))


def write_mask(path: Path, labels: np.ndarray, like: Path | None) -> None:
    np.save(path, labels, allow_pickle=False)


def write_image(path: Path, image: np.ndarray, like: Path | None) -> None:
    np.save(path, np.asarray(image, dtype=np.float32), allow_pickle=False)


def _map(path: Path) -> np.ndarray:
    with READING_HEADERS:
        return np.lib.format.open_memmap(path, mode="r")  # refuses pickled objects


def _with_channels(pixels: np.ndarray, rank: int) -> np.ndarray:
    if pixels.ndim not in (rank, rank + 1):
        raise no_such_image(pixels.shape, rank)
    return pixels if pixels.ndim == rank + 1 else pixels[None]


def _in_memory_if_small(pixels: np.ndarray) -> np.ndarray:
    return pixels if pixels.nbytes >= MEMORY_MAP_BYTES else np.array(pixels)
