"""What a mask's file holds before anybody says what it means: one plane or several, and transparency."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from PIL import Image

from annotruth.errors import InputError
from annotruth.io.files import format_of, reading, suffix_of
from annotruth.io.formats import nifti, npy, pictures, tiff
from annotruth.io.formats.header import PICTURES

PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", *pictures.SUFFIXES)


@dataclass(frozen=True)
class Planes:
    """The content of a file.

    Attributes
    ----------
    pixels : (planes, *spatial) of any type of number
    alpha : (*spatial), how opaque each pixel is, or None
    coloured : whether three planes are red, green and blue, not layers
    """

    pixels: np.ndarray
    alpha: np.ndarray | None = None
    coloured: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return self.pixels.shape[1:]

    @cached_property
    def is_grey(self) -> bool:
        """Whether one plane says it all."""
        return len(self.pixels) == 1 or (self.coloured and bool((self.pixels[1:] == self.pixels[:1]).all()))

    def grey(self) -> np.ndarray:
        """One of several equal planes (*spatial).

        Examples
        --------
        >>> Planes(np.full((3, 2, 2), 7), coloured=True).grey()
        array([[7, 7],
               [7, 7]])
        """
        return self.pixels[0]


def read_planes(path: Path, where: str, rank: int | None = None, palette: bool = True) -> Planes:
    """Read a mask's file.

    Parameters
    ----------
    rank : how many axes are spatial, where the image tells; by default two for pictures and TIFF, and as many as there
        are, up to three, for NIfTI and NPY
    palette : whether numbers of a palette are what counts; False takes its colours

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGBA", (4, 3)).save(Path(folder) / "a.png")
    ...     planes = read_planes(Path(folder) / "a.png", "a.png")
    >>> planes.pixels.shape, planes.alpha.shape, planes.is_grey
    ((3, 3, 4), (3, 4), True)
    """
    if suffix_of(path) is None:
        raise InputError(f"{where}: not a file of a known format. Save it as .png, .tiff, .nii.gz or .npy.")
    with reading(where):
        if (suffix_of(path) or "").lower() in PICTURE_SUFFIXES:
            planes = _read_picture(path, palette)
        elif format_of(path) is tiff:
            planes = _read_tiff(path, rank)
        elif format_of(path) is nifti:
            planes = _read_nifti(path, rank)
        elif format_of(path) is npy:
            planes = _from_array(np.array(npy.read_mask(path)), rank)
        else:  # a format of somebody else's, which knows what its masks are
            planes = Planes(format_of(path).read_mask(path)[None])
        if 0 in planes.pixels.shape:
            raise InputError("the file holds no pixel. Replace it.")
        if planes.pixels.ndim not in (3, 4):
            raise InputError(f"the file has {planes.pixels.ndim - 1} spatial axes. Masks have two or three.")
        return planes


def _read_picture(path: Path, palette: bool) -> Planes:
    if (suffix_of(path) or "").lower() in pictures.SUFFIXES:
        with pictures.open_picture(path) as picture:
            return _from_picture(picture, palette)
    with Image.open(path, formats=PICTURES) as picture:
        picture.verify()  # decoding alone would let flipped bits pass as pixels
    with Image.open(path, formats=PICTURES) as picture:
        return _from_picture(picture, palette)


def _from_picture(picture: Image.Image, palette: bool) -> Planes:
    if picture.mode == "P" and not palette:
        picture = picture.convert("RGBA" if "transparency" in picture.info else "RGB")
    elif picture.mode in ("CMYK", "YCbCr", "HSV", "LAB"):
        picture = picture.convert("RGB")
    pixels = np.array(picture)
    pixels = pixels[None] if pixels.ndim == 2 else np.ascontiguousarray(np.moveaxis(pixels, -1, 0))
    alpha = picture.mode in ("RGBA", "LA", "La", "RGBa", "PA")
    return Planes(pixels[:-1] if alpha else pixels, pixels[-1] if alpha else None, coloured=len(pixels) - alpha == 3)


def _read_tiff(path: Path, rank: int | None) -> Planes:
    with tifffile.TiffFile(path) as file:
        series = tiff.only_series(file)
        axis, transparent = tiff.channel_axis(series), 0
        pixels = tiff.read_pixels(path, series)
        if axis is not None:
            transparent = tiff.count_transparent(file, series.shape[axis])
            coloured = series.axes[axis] == "S"
            pixels = np.moveaxis(pixels, axis, 0)
    if axis is None:
        return _from_array(pixels, rank)
    opaque = pixels[: len(pixels) - transparent]
    return Planes(opaque, pixels[-1] if transparent else None, coloured=coloured and len(opaque) == 3)


def _read_nifti(path: Path, rank: int | None) -> Planes:
    voxels = nifti.read_voxels(path)
    while voxels.ndim > (rank or 3) + 1 and voxels.shape[-1] == 1:
        voxels = voxels[..., 0]
    if voxels.dtype.fields is not None:  # RGB24, as some viewers save label maps
        colours = [name for name in ("R", "G", "B") if name in voxels.dtype.fields]
        return Planes(np.stack([voxels[name] for name in colours]), coloured=True)
    spatial = min(voxels.ndim, 3) if rank is None else rank
    return Planes(np.moveaxis(voxels, -1, 0) if voxels.ndim == spatial + 1 else voxels[None])


def _from_array(pixels: np.ndarray, rank: int | None) -> Planes:
    """Planes of an array that does not say which axis is what: layers first, or colours last."""
    if rank is None and pixels.ndim == 4:
        rank = 3
    if rank is None or pixels.ndim == rank:
        if rank is None and pixels.ndim == 3 and pixels.dtype == np.uint8 and pixels.shape[-1] in (3, 4):
            return _colours_last(pixels)
        return Planes(pixels[None])
    if pixels.ndim != rank + 1:
        raise InputError(f"the mask has {pixels.ndim} axes, its image has {rank}. Save one number per pixel.")
    if rank == 2 and pixels.dtype == np.uint8 and pixels.shape[-1] in (3, 4) and pixels.shape[0] > 4:
        return _colours_last(pixels)
    return Planes(np.moveaxis(pixels, -1, 0) if pixels.shape[-1] < min(pixels.shape[:-1]) else pixels)


def _colours_last(pixels: np.ndarray) -> Planes:
    planes: Any = np.moveaxis(pixels, -1, 0)
    return Planes(planes[:3], planes[3] if len(planes) == 4 else None, coloured=True)
