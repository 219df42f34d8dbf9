"""The file formats, one module each, found by suffix.

A format is a module with the names of :class:`Format`. To add one: write such a module and list it in ``FORMATS``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import numpy as np

from annotruth.io.formats import jpeg, nifti, npy, png, tiff
from annotruth.io.formats.header import Header


class Format(Protocol):
    """What a format module offers. Masks are (*spatial), images (channels, *spatial).

    The masks decide how many spatial axes there are; ``rank`` tells an image's reader, so that it can tell a third
    spatial axis from channels. Wrong content raises InputError without naming the file; damaged files may raise
    anything. ``like`` is a file of the same format whose geometry the new file takes over.
    """

    SUFFIXES: tuple[str, ...]

    def mask_header(self, path: Path) -> Header: ...
    def image_header(self, path: Path, rank: int) -> Header: ...
    def read_mask(self, path: Path) -> np.ndarray: ...
    def read_image(self, path: Path, rank: int) -> np.ndarray: ...
    def write_mask(self, path: Path, labels: np.ndarray, like: Path | None) -> None: ...
    def write_image(self, path: Path, image: np.ndarray, like: Path | None) -> None: ...


FORMATS: tuple[Format, ...] = (nifti, png, tiff, npy, jpeg)
SUFFIXES = tuple(suffix for format in FORMATS for suffix in format.SUFFIXES)
EXACT_SUFFIXES = tuple(suffix for suffix in SUFFIXES if suffix not in jpeg.SUFFIXES)
"""Of formats that keep every value, as masks and results must."""


def suffix_of(path: str | Path) -> str | None:
    """Give the known suffix a file name ends with, in the file's own spelling, or None.

    Examples
    --------
    >>> suffix_of("cases/images/case.1.NII.gz")
    '.NII.gz'
    """
    name = Path(path).name
    matching = [suffix for suffix in SUFFIXES if name.lower().endswith(suffix) and len(name) > len(suffix)]
    return name[-len(max(matching, key=len)) :] if matching else None


def format_of(path: str | Path) -> Format:
    """Give the format of a file whose suffix is known."""
    suffix = (suffix_of(path) or "").lower()
    return next(format for format in FORMATS if suffix in format.SUFFIXES)


def case_of(path: str | Path) -> str:
    """Give the name of the case a file belongs to: its name without the suffix."""
    path = Path(path)
    return path.name.removesuffix(suffix_of(path) or "")
