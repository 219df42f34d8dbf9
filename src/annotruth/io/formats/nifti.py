"""NIfTI (``.nii``, ``.nii.gz``): two or three spatial axes, channels in a last axis, an affine in millimetres."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from io import BytesIO
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from annotruth.errors import InputError
from annotruth.io.formats.header import Header, no_such_image, refuse_swollen

if TYPE_CHECKING:
    import nibabel

SUFFIXES: tuple[str, ...] = (".nii", ".nii.gz")
LOSSY = False
_QUICK = 1  # zlib's level, as nibabel's
_GZIP = 31  # what zlib calls the form of .gz files


def mask_header(path: Path) -> Header:
    file = _open(path)
    shape = _mask_shape(file.shape)
    return Header(shape, file.affine, _spacing(file.affine, len(shape)))


def image_header(path: Path, rank: int) -> Header:
    file = _open(path)
    *spatial, channels = _image_shape(file.shape, rank)
    return Header((channels, *spatial), file.affine, _spacing(file.affine, rank))


def read_mask(path: Path) -> np.ndarray:
    file = _open(path)
    return np.asanyarray(file.dataobj).reshape(_mask_shape(file.shape))


def read_image(path: Path, rank: int) -> np.ndarray:
    file = _open(path)
    voxels = file.get_fdata(dtype=np.float32, caching="unchanged").reshape(_image_shape(file.shape, rank))
    return np.ascontiguousarray(np.moveaxis(voxels, -1, 0))


def write_mask(path: Path, labels: np.ndarray, like: Path | None) -> None:
    _save(path, labels, like)


def write_image(path: Path, image: np.ndarray, like: Path | None) -> None:
    """Write (channels, *spatial) with the channels last; a plane gets a third axis, so that they stand fourth."""
    if len(image) == 1:
        _save(path, image[0], like)
    else:
        voxels = np.moveaxis(image, 0, -1)
        _save(path, voxels if voxels.ndim == 4 else voxels[:, :, None], like)


def read_voxels(path: Path) -> np.ndarray:
    """Voxels in the file's own shape and type."""
    return np.asanyarray(_open(path).dataobj)


def mask_axes(path: Path) -> tuple[int, ...]:
    """The size of all axes, from the file's head."""
    return tuple(_open(path).shape)


def _open(path: Path) -> nibabel.Nifti1Image:
    import nibabel  # takes longer than reading a hundred files of other formats

    file = nibabel.load(path, mmap=False)  # a map would keep the file open, and there may be thousands
    if not isinstance(file, nibabel.Nifti1Image):  # version 2 of the format is a subclass
        raise InputError("the file is not NIfTI, whatever its suffix says. Replace it.")
    refuse_swollen(path, prod(file.shape) * file.get_data_dtype().itemsize)
    return file


def _mask_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Size without the axes of length 1 that some writers add behind the third."""
    volumes = int(np.prod(shape[3:]))
    if volumes > 1:
        raise InputError(
            f"the mask holds {volumes} volumes; a mask holds one class number per voxel. "
            "Join the volumes of the classes into one."
        )
    return shape[:3]


def _image_shape(shape: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """(*spatial, channels); axes of length 1 behind the spatial ones carry nothing."""
    beyond = [size for size in shape[rank:] if size > 1]
    if len(shape) < rank or len(beyond) > 1:
        raise no_such_image(shape, rank)
    return (*shape[:rank], *(beyond or [1]))


def _spacing(affine: np.ndarray, rank: int) -> tuple[float, ...] | None:
    """Millimetres along the first axes; None where the affine is no map of space."""
    steps = np.linalg.norm(affine[:3, :rank], axis=0)
    return tuple(steps.tolist()) if np.isfinite(steps).all() and (steps > 0).all() else None


def _save(path: Path, voxels: np.ndarray, like: Path | None) -> None:
    import nibabel

    if like is None:
        image = nibabel.Nifti1Image(voxels, np.eye(4))
    else:
        source = _open(like)
        header = source.header.copy()
        header.set_data_dtype(voxels.dtype)
        header.set_intent("none")  # the image's intent and grey window say nothing about labels or probabilities
        header["cal_min"] = header["cal_max"] = 0
        image = type(source)(voxels, source.affine, header)
    if path.suffix == ".gz":
        path.write_bytes(b"".join(_zipped(image.header, voxels)))
    else:
        nibabel.save(image, path)


def _zipped(header: nibabel.Nifti1Header, voxels: np.ndarray) -> Iterator[bytes]:
    """A compressed file's content: the head as nibabel writes it, and the voxels in one go, beside other threads."""
    header.set_slope_inter(1, 0)  # values stand for themselves
    header.set_data_offset(0)  # to be set by what follows the head
    head = BytesIO()
    header.write_to(head)
    pack = zlib.compressobj(_QUICK, wbits=_GZIP)
    yield pack.compress(head.getvalue().ljust(header.get_data_offset(), b"\0"))
    yield pack.compress(voxels.astype(header.get_data_dtype(), copy=False).ravel(order="F").data)
    yield pack.flush()
