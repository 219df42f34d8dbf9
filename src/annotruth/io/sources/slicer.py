"""3D Slicer: a segmentation per file, <rater>/<case>.seg.nrrd; overlapping segments lie in layers."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from annotruth.data.annotations import Lazy
from annotruth.errors import InputError
from annotruth.io.contents import Contents
from annotruth.io.drawn import files_at, folders_of_images, parsing
from annotruth.io.extras import need
from annotruth.io.formats.nifti import SUFFIXES as NIFTI
from annotruth.io.formats.nifti import mask_header
from annotruth.io.grids import LPS_TO_RAS, Grid
from annotruth.io.problems import Report
from annotruth.io.sources import register
from annotruth.io.sources.imports import ImportSource
from annotruth.io.volumes import Volumes

SUFFIX = ".seg.nrrd"
_TO_RAS = {
    "left-posterior-superior": LPS_TO_RAS,
    "lps": LPS_TO_RAS,
    "right-anterior-superior": np.eye(4),
    "ras": np.eye(4),
}


@register
class Slicer(ImportSource):
    """<rater>/<case>.seg.nrrd, and <case>.nrrd or <case>.nii.gz where there are images."""

    name = "3D Slicer folder"
    key = "slicer"
    description = "a folder of 3D Slicer's segmentations, <rater>/<case>.seg.nrrd"
    kind = "masks"
    holds = ("image", "mask", "3D")
    identity = "the folder's name"
    inputs = ("images", "duplicates")

    def matches(self, path: Path) -> bool:
        return bool(_files(path))

    def read(self, path: Path, report: Report, **inputs: Any) -> Contents:
        nrrd = need("nrrd", "nrrd")
        volumes = Volumes(report, inputs.get("duplicates", "error"))
        look_in = folders_of_images(path, inputs.get("images"))
        for file in _files(path):
            case, rater = file.name[: -len(SUFFIX)], file.parent.name
            with parsing(report, file, case, rater):
                grid, segments = _survey(nrrd, file)
                image, image_grid = _find_image(nrrd, case, [*look_in, file.parent])
                volumes.add_image(case, case, image, image_grid)
                volumes.add(case, file, rater, rater, segments, grid, read_segments)
        return volumes.contents()


def _files(path: Path) -> list[Path]:
    return [file for file in files_at(path, f"*{SUFFIX}") if file.name.lower().endswith(SUFFIX)]


def _survey(nrrd: Any, file: Path) -> tuple[Grid, list[str]]:
    """The grid, and the names of the segments, from a file's head."""
    header = _header(nrrd, file)
    return _grid(header), [name for name, _, _ in _segments(header)]


def _header(nrrd: Any, file: Path) -> dict[str, Any]:
    try:
        return dict(nrrd.read_header(str(file)))
    except Exception as error:  # a damaged head can raise anything
        raise InputError(f"cannot be read ({error}). The file is damaged, or not NRRD; replace it.") from error


def _grid(header: dict[str, Any]) -> Grid:
    """Of the last three axes; layers come first."""
    space = str(header.get("space", "left-posterior-superior")).lower()
    if space not in _TO_RAS:
        raise InputError(f"the space {space} is not one of {', '.join(sorted(_TO_RAS))}. Export it anew.")
    affine = np.eye(4)
    directions = np.array(header.get("space directions", np.eye(3)), dtype=np.float64)
    affine[:3, :3] = directions[-3:].T
    affine[:3, 3] = np.array(header.get("space origin", np.zeros(3)), dtype=np.float64)
    if not np.isfinite(affine).all():
        raise InputError("the space directions are not three sound ones. Export it anew.")
    sizes = tuple(int(size) for size in header["sizes"])
    if len(sizes) not in (3, 4):
        raise InputError(f"the file has {len(sizes)} axes, not three, or four with layers. Export it anew.")
    return Grid(sizes[-3:], _TO_RAS[space] @ affine)


def _segments(header: dict[str, Any]) -> list[tuple[str, int, int]]:
    """Name, layer and label value of each segment, in order."""
    numbers = sorted(int(found[1]) for key in header if (found := re.fullmatch(r"Segment(\d+)_ID", str(key))))
    if not numbers:
        raise InputError("the head names no segment. Is it a segmentation of 3D Slicer?")
    return [
        (
            str(header.get(f"Segment{n}_Name") or header[f"Segment{n}_ID"]),
            int(header.get(f"Segment{n}_Layer", 0)),
            int(header.get(f"Segment{n}_LabelValue", 1)),
        )
        for n in numbers
    ]


def read_segments(file: Path, classes: tuple[str, ...]) -> np.ndarray:
    """Read class numbers (three axes); where segments overlap, the last counts."""
    voxels, header = need("nrrd", "nrrd").read(str(file))
    layers = voxels if voxels.ndim == 4 else voxels[None]
    labels = np.zeros(layers.shape[1:], dtype=np.uint8)
    numbers = {name: number for number, name in enumerate(classes)}
    for name, layer, value in _segments(dict(header)):
        labels[layers[layer] == value] = numbers.get(name, 0)
    return labels


def _find_image(nrrd: Any, case: str, folders: list[Path]) -> tuple[Path | Lazy | None, Grid | None]:
    """The volume that a case is named after, in NIfTI or NRRD."""
    for folder in folders:
        for suffix in (*NIFTI, ".nrrd"):
            file = folder / f"{case}{suffix}"
            if not file.is_file():
                continue
            if suffix != ".nrrd":
                head = mask_header(file)
                assert head.affine is not None
                return file, Grid(head.shape, head.affine)
            header = _header(nrrd, file)
            grid = _grid(header)
            if len(header["sizes"]) != 3:
                raise InputError(f"the image {file} has {len(header['sizes'])} axes, not three. Convert it to NIfTI.")
            return Lazy(partial(read_volume, file), (1, *grid.shape)), grid
    return None, None


def read_volume(file: Path) -> np.ndarray:
    """Read an image (1, *spatial)."""
    voxels, _ = need("nrrd", "nrrd").read(str(file))
    return np.asarray(voxels, dtype=np.float32)[None]
