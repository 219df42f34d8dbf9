"""NPY: a NumPy array in a file, read as a memory map. Images with one axis more than the masks are channels-first."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from annotruth.io.formats.header import Header, no_such_image

SUFFIXES: tuple[str, ...] = (".npy",)


def mask_header(path: Path) -> Header:
    return Header(read_mask(path).shape)


def image_header(path: Path, rank: int) -> Header:
    return Header(read_image(path, rank).shape)


def read_mask(path: Path) -> np.ndarray:
    return np.lib.format.open_memmap(path, mode="r")  # refuses pickled objects


def read_image(path: Path, rank: int) -> np.ndarray:
    pixels = np.lib.format.open_memmap(path, mode="r")
    if pixels.ndim not in (rank, rank + 1):
        raise no_such_image(pixels.shape, rank)
    return pixels if pixels.ndim == rank + 1 else pixels[None]


def write_mask(path: Path, labels: np.ndarray, like: Path | None) -> None:
    np.save(path, labels, allow_pickle=False)


def write_image(path: Path, image: np.ndarray, like: Path | None) -> None:
    np.save(path, np.asarray(image, dtype=np.float32), allow_pickle=False)
