"""TIFF (``.tif``, ``.tiff``): planes, colour pictures, and several pages.

The pages of a mask are its third axis. An image's channels are the axis that the file calls colour samples or
channels; where it names none and the masks are planes, its pages are the channels. Transparency is dropped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from PIL import Image, ImageSequence

from annotruth.errors import InputError
from annotruth.io.formats.header import Header, coloured_mask, no_such_image, refuse_swollen

SUFFIXES: tuple[str, ...] = (".tif", ".tiff")
LOSSY = False
_QUICK = 1  # zlib's level: others take several times as long, for a few hundredths of the size
_MAP_GEOMETRY = (33550, 33922, 34264, 34735, 34736, 34737)  # where GeoTIFF keeps scale, tie points and projection

_MILLIMETRES = {"mm": 1.0, "cm": 10.0, "um": 1e-3, "µm": 1e-3, "μm": 1e-3, "micron": 1e-3, "microns": 1e-3, "nm": 1e-6}


def mask_header(path: Path) -> Header:
    with tifffile.TiffFile(path) as file:
        series = only_series(file)
        return Header(_mask_shape(series), spacing=_spacing(file, series, channel_axis(series)))


def image_header(path: Path, rank: int) -> Header:
    with tifffile.TiffFile(path) as file:
        series = only_series(file)
        shape, axis = _image_layout(series, rank)
        channels = 1 if axis is None else shape[axis] - count_transparent(file, shape[axis])
        spacing = _spacing(file, series, axis)
    return Header((channels, *(size for position, size in enumerate(shape) if position != axis)), spacing=spacing)


def read_mask(path: Path) -> np.ndarray:
    with tifffile.TiffFile(path) as file:
        series = only_series(file)
        return read_pixels(path, series).reshape(_mask_shape(series))


def read_image(path: Path, rank: int) -> np.ndarray:
    with tifffile.TiffFile(path) as file:
        series = only_series(file)
        shape, axis = _image_layout(series, rank)
        pixels = read_pixels(path, series)
        if axis is None:
            return pixels[None]
        channels = shape[axis] - count_transparent(file, shape[axis])
    return np.ascontiguousarray(np.moveaxis(pixels, axis, 0)[:channels])


def write_mask(path: Path, labels: np.ndarray, like: Path | None) -> None:
    _save(path, labels, "ZYX"[-labels.ndim :], like)


def write_image(path: Path, image: np.ndarray, like: Path | None) -> None:
    """Write (channels, *spatial) as float32 pages."""
    _save(path, np.asarray(image, dtype=np.float32), "C" + "ZYX"[1 - image.ndim :], like)


def only_series(file: tifffile.TiffFile) -> Any:
    """The one picture, or stack of pages of one size, that a file holds."""
    if len(file.series) != 1:
        raise InputError(f"the file holds {len(file.series)} pictures of different sizes. Keep one per file.")
    series = file.series[0]
    refuse_swollen(Path(file.filehandle.path), series.nbytes)
    return series


def channel_axis(series: Any) -> int | None:
    """The axis that the file calls colour samples or channels."""
    named = [axis for axis, letter in enumerate(series.axes) if letter in "SC"]
    return named[-1] if named else None


def _mask_shape(series: Any) -> tuple[int, ...]:
    axis = channel_axis(series)
    if axis is None:
        return tuple(series.shape)
    if series.shape[axis] > 1:
        raise coloured_mask(series.shape[axis])
    return tuple(size for position, size in enumerate(series.shape) if position != axis)


def _image_layout(series: Any, rank: int) -> tuple[tuple[int, ...], int | None]:
    """Size as stored, and which axis holds the channels (None: there is one channel without an axis)."""
    if series.keyframe.photometric == tifffile.PHOTOMETRIC.PALETTE:
        raise InputError("the image is stored with a palette. Save it in greyscale or in colour.")
    shape, axis = tuple(series.shape), channel_axis(series)
    if axis is None and len(shape) == rank + 1:
        axis = 0
    if len(shape) != rank + (axis is not None):
        raise no_such_image(shape, rank)
    return shape, axis


def count_transparent(file: tifffile.TiffFile, samples: int) -> int:
    """How many of the samples of a pixel are transparency."""
    extra = file.pages.first.extrasamples
    return len(extra) if samples > len(extra) and all(kind in (1, 2) for kind in extra) else 0


def _spacing(file: tifffile.TiffFile, series: Any, channel_axis: int | None) -> tuple[float, ...] | None:
    """Millimetres along the spatial axes, where ImageJ wrote them with a unit of length.

    Dots per inch, or per centimetre, mostly say how to print a picture, not how large a pixel is.
    """
    told = file.imagej_metadata or {}
    unit = _MILLIMETRES.get(str(told.get("unit", "")).replace("\\u00B5", "µ").lower())
    if unit is None or any(told.get(other, told["unit"]) != told["unit"] for other in ("yunit", "zunit")):
        return None
    along = {"Z": float(told.get("spacing", 0))}
    for letter, name in (("X", "XResolution"), ("Y", "YResolution")):
        pixels, length = file.pages.first.tags[name].value if name in file.pages.first.tags else (0, 1)
        along[letter] = length / pixels if pixels else 0.0
    axes = [letter for axis, letter in enumerate(series.axes) if axis != channel_axis]
    steps = tuple(unit * along.get(letter, 0.0) for letter in axes)
    return steps if all(np.isfinite(step) and step > 0 for step in steps) else None


def read_pixels(path: Path, series: Any) -> np.ndarray:
    """Pixels in the shape of the series."""
    try:
        return np.asarray(series.asarray())
    except ValueError as error:
        if "imagecodecs" not in str(error):
            raise
    # tifffile leaves LZW and some others to a package of their own; Pillow reads the common ones.
    with Image.open(path, formats=["TIFF"]) as file:
        return np.stack([np.array(page) for page in ImageSequence.Iterator(file)]).reshape(series.shape)


def _save(path: Path, pixels: np.ndarray, axes: str, like: Path | None) -> None:
    tifffile.imwrite(
        path, np.ascontiguousarray(pixels), photometric="minisblack", compression="zlib",
        compressionargs={"level": _QUICK}, metadata={"axes": axes}, bigtiff=pixels.nbytes > 2**31,
        **({} if like is None else _geometry(like)),
    )  # fmt: skip


def _geometry(like: Path) -> dict[str, Any]:
    """Pixels per length, and a map's place on the earth."""
    with tifffile.TiffFile(like) as file:
        page = file.pages.first
        kept = [page.tags[code] for code in _MAP_GEOMETRY if code in page.tags]
        resolution = [page.tags[name].value for name in ("XResolution", "YResolution") if name in page.tags]
        return {
            "extratags": [(tag.code, tag.dtype, tag.count, tag.value, True) for tag in kept],
            "resolution": resolution if len(resolution) == 2 else None,
            "resolutionunit": page.resolutionunit,
        }
