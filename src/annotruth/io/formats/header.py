"""What can be known of a file without reading its pixels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from annotruth.errors import InputError

MOST_FROM_ONE = 1100
"""Bytes of pixels that one byte of a compressed file may stand for."""

PICTURES = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "PPM", "WEBP")
"""What Pillow may take a file's content for, whatever its name: formats that it reads itself. For others (EPS) it
starts another program, which executes what the file says."""


@dataclass(frozen=True)
class Header:
    """A file's size and place in space.

    Attributes
    ----------
    shape : (*spatial) of a mask, (channels, *spatial) of an image
    affine : (4, 4), from voxel numbers to millimetres, or None where the format has none
    spacing : millimetres from pixel to pixel along each spatial axis, or None where the file does not tell
    """

    shape: tuple[int, ...]
    affine: np.ndarray | None = None
    spacing: tuple[float, ...] | None = None


def refuse_swollen(path: Path, n_bytes: int) -> None:
    """Refuse a file whose head promises more bytes of pixels than it can hold, before memory is taken for them.

    Deflate makes at most 1032 bytes of one, and other ways to compress pictures seldom more.
    """
    size = path.stat().st_size
    if n_bytes > MOST_FROM_ONE * max(size, 2**16):
        raise InputError(
            f"its head promises {n_bytes / 2**20:,.0f} MB of pixels, which a file of {size / 2**20:,.3f} MB cannot "
            "hold. The file is damaged; replace it."
        )


def no_such_image(shape: tuple[int, ...], rank: int) -> InputError:
    """Make the error for an image that cannot be (channels, *spatial) with ``rank`` spatial axes."""
    return InputError(
        f"the image has {len(shape)} axes ({'×'.join(map(str, shape))}), but the masks have {rank}. "
        f"An image has the masks' {rank} axes, or one more for its channels."
    )


def coloured_mask(channels: int) -> InputError:
    """Make the error for a mask stored in colour."""
    return InputError(
        f"the mask has {channels} colour channels; a mask holds one class number per pixel. "
        "Save it in greyscale or with a palette, or import the folder as it is: annotruth import --from mask-folder."
    )
