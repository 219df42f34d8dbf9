"""One file as a mask or an image, whatever its format; what goes wrong names the file, the case and the rater."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from annotruth.errors import InputError
from annotruth.io.atomic import atomic
from annotruth.io.formats import format_of
from annotruth.io.formats.header import Header
from annotruth.validation import finite_image, whole_numbers


def mask_header(path: Path, where: str) -> Header:
    """Give a mask's size (*spatial) and geometry; only the file's head is read."""
    with _reading(where):
        header = format_of(path).mask_header(path)
        _refuse_odd_shapes(header.shape, header.shape)
    return header


def image_header(path: Path, rank: int, where: str) -> Header:
    """Give an image's size (channels, *spatial) and geometry; only the file's head is read."""
    with _reading(where):
        header = format_of(path).image_header(path, rank)
        _refuse_odd_shapes(header.shape[1:], header.shape)
    return header


def read_mask(path: Path, where: str) -> np.ndarray:
    """Read a mask's pixel values (*spatial) as integers."""
    with _reading(where):
        pixels = format_of(path).read_mask(path)
    return whole_numbers(pixels, where)


def read_image(path: Path, rank: int, where: str) -> np.ndarray:
    """Read an image (channels, *spatial) as finite float32."""
    with _reading(where):
        pixels = format_of(path).read_image(path, rank)
    return finite_image(pixels, where)


def write_mask(path: Path, pixels: np.ndarray, like: Path | None) -> Path:
    """Write pixel values (*spatial) with the geometry of ``like``, if that is a file of the same format."""
    with _writing(path), atomic(path) as temporary:
        format_of(path).write_mask(temporary, pixels, _same_format(path, like))
    return path


def write_image(path: Path, image: np.ndarray, like: Path | None) -> Path:
    """Write an image (channels, *spatial) with the geometry of ``like``, if that is a file of the same format."""
    with _writing(path), atomic(path) as temporary:
        format_of(path).write_image(temporary, image, _same_format(path, like))
    return path


def _same_format(path: Path, like: Path | None) -> Path | None:
    return like if like is not None and format_of(like) is format_of(path) else None


def _refuse_odd_shapes(spatial: tuple[int, ...], shape: tuple[int, ...]) -> None:
    size = "×".join(map(str, shape))
    if len(spatial) not in (2, 3):
        raise InputError(f"the file has {len(spatial)} spatial axes ({size}). Masks have two or three.")
    if 0 in shape:
        raise InputError(f"the file holds no pixel ({size}). Replace it.")


@contextmanager
def _reading(where: str) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    except (FileNotFoundError, PermissionError) as error:
        raise InputError(f"{where}: cannot be opened: {error.strerror}. Restore the file.") from error
    except MemoryError as error:
        raise InputError(f"{where}: needs more memory than there is. Is the file damaged, or simply large?") from error
    except Exception as error:  # a damaged file can raise anything inside its parser
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"{where}: cannot be read ({reason}). The file is damaged, or not what its suffix says; replace it."
        ) from error


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
