"""The file formats, one module each, found by suffix.

A format is a module with the names of :class:`Format`. To add one, put such a module into this folder: every module
here that names its ``SUFFIXES`` is a format.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Protocol

import numpy as np

from annotruth.io.formats.header import Header


class Format(Protocol):
    """What a format module offers. Masks are (*spatial), images (channels, *spatial).

    The masks decide how many spatial axes there are; ``rank`` tells an image's reader, so that it can tell a third
    spatial axis from channels. Wrong content raises InputError without naming the file; damaged files may raise
    anything. ``like`` is a file of the same format whose geometry the new file takes over. A format that is ``LOSSY``
    does not keep every value, and so takes neither masks nor results.
    """

    SUFFIXES: tuple[str, ...]
    LOSSY: bool

    def mask_header(self, path: Path) -> Header: ...
    def image_header(self, path: Path, rank: int) -> Header: ...
    def read_mask(self, path: Path) -> np.ndarray: ...
    def read_image(self, path: Path, rank: int) -> np.ndarray: ...
    def write_mask(self, path: Path, labels: np.ndarray, like: Path | None) -> None: ...
    def write_image(self, path: Path, image: np.ndarray, like: Path | None) -> None: ...


_MODULES: list[Any] = [import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__)]
FORMATS: tuple[Format, ...] = tuple(module for module in _MODULES if hasattr(module, "SUFFIXES"))
SUFFIXES = tuple(suffix for format in FORMATS for suffix in format.SUFFIXES)
EXACT_SUFFIXES = tuple(suffix for format in FORMATS if not format.LOSSY for suffix in format.SUFFIXES)
"""Of formats that keep every value, as masks and results must."""
