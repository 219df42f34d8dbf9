"""DICOM files: what a folder holds, and a series of slices as a volume.

Axes of volumes are (columns, rows, slices), and places are in NIfTI's millimetres, as everywhere here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from annotruth.data.annotations import Lazy
from annotruth.errors import InputError
from annotruth.io.drawn import files_at
from annotruth.io.extras import need
from annotruth.io.grids import LPS_TO_RAS, Grid

SEGMENTATIONS = (b"1.2.840.10008.5.1.4.1.1.66.4", b"1.2.840.10008.5.1.4.1.1.66.7")
STRUCTURES = (b"1.2.840.10008.5.1.4.1.1.481.3",)
SPACING_TOLERANCE = 0.01
"""By what share of itself the distance between slices may vary."""
_HEAD = 1024


@dataclass
class Series:
    """The slices of one series.

    Attributes
    ----------
    slices : file and head of each, in no order
    """

    uid: str
    slices: list[tuple[Path, Any]] = field(default_factory=list)

    @property
    def patient(self) -> str:
        return str(self.slices[0][1].get("PatientID", "") or "")

    def ordered(self) -> list[tuple[Path, Any]]:
        """The slices along the normal of their plane."""
        normal = _normal(self.slices[0][1])
        return sorted(self.slices, key=lambda one: float(normal @ np.array(one[1].ImagePositionPatient, dtype=float)))

    def grid(self) -> Grid:
        """The grid (columns, rows, slices), refusing slices that are not parallel and evenly spaced."""
        slices = [head for _, head in self.ordered()]
        first = slices[0]
        if any("ImagePositionPatient" not in head or "PixelSpacing" not in head for head in slices):
            raise InputError(f"slices of the series {self.uid} do not tell where they lie. Give a volume.")
        positions = np.array([head.ImagePositionPatient for head in slices], dtype=float)
        directions = np.array([head.ImageOrientationPatient for head in slices], dtype=float)
        if np.ptp(directions, axis=0).max() > 1e-3 or len({(head.Rows, head.Columns) for head in slices}) > 1:
            raise InputError(f"the slices of the series {self.uid} are not parallel and of one size. Give a volume.")
        steps = np.diff(positions, axis=0)
        step = steps.mean(axis=0) if len(steps) else _normal(first) * float(first.get("SliceThickness") or 1)
        if len(steps) and np.linalg.norm(steps - step, axis=1).max() > SPACING_TOLERANCE * np.linalg.norm(step):
            raise InputError(f"the slices of the series {self.uid} are not evenly spaced; one may be missing.")
        down, across = map(float, first.PixelSpacing)
        affine = np.eye(4)
        affine[:3, 0] = directions[0, :3] * across
        affine[:3, 1] = directions[0, 3:] * down
        affine[:3, 2], affine[:3, 3] = step, positions[0]
        return Grid((int(first.Columns), int(first.Rows), len(slices)), LPS_TO_RAS @ affine)

    def image(self) -> Lazy:
        """The volume (1, columns, rows, slices), read when it is needed."""
        files = tuple(file for file, _ in self.ordered())
        return Lazy(partial(read_slices, files), (1, *self.grid().shape))


def read_slices(files: tuple[Path, ...]) -> np.ndarray:
    """Read slices, in order, as (1, columns, rows, slices) in the units of their modality."""
    pydicom = need("pydicom", "dicom")
    planes = []
    for file in files:
        try:
            head = pydicom.dcmread(file)
            plane = head.pixel_array.astype(np.float32)
        except Exception as error:  # a damaged or compressed file can raise anything
            raise InputError(f"{file}: cannot be read ({error}). Replace it, or save it uncompressed.") from error
        slope, start = float(head.get("RescaleSlope", 1) or 1), float(head.get("RescaleIntercept", 0) or 0)
        planes.append((plane * slope + start).T)
    return np.stack(planes, axis=-1)[None]


def is_of(file: Path, classes: tuple[bytes, ...]) -> bool:
    """Whether a file is DICOM of one of these kinds; its first bytes tell."""
    try:
        with file.open("rb") as opened:
            head = opened.read(_HEAD)
    except OSError:
        return False
    return head[128:132] == b"DICM" and any(each in head for each in classes)


def list_candidates(folder: Path) -> list[Path]:
    """Files that may be DICOM by their name: .dcm, .ima, no suffix, or a number as one."""
    return [
        path
        for path in files_at(folder, "*")
        if path.suffix.lower() in ("", ".dcm", ".ima", ".dicom") or _is_number(path)
    ]


def _is_number(path: Path) -> bool:
    return path.suffix[1:].isdigit()


def read_head(file: Path) -> Any:
    """Read everything but pixels."""
    pydicom = need("pydicom", "dicom")
    try:
        return pydicom.dcmread(file, stop_before_pixels=True)
    except Exception as error:
        raise InputError(f"{file}: cannot be read ({error}). The file is damaged; replace it.") from error


def find_series(folder: Path) -> dict[str, Series]:
    """The series of image slices below a folder, by their number."""
    pydicom = need("pydicom", "dicom")
    found: dict[str, Series] = {}
    for file in list_candidates(folder):
        if not is_of(file, (b"1.2.840.10008.5.1.4.1.1.",)) or is_of(file, (*SEGMENTATIONS, *STRUCTURES)):
            continue
        try:
            head = pydicom.dcmread(file, stop_before_pixels=True)
        except Exception:  # damaged slices show as a gap in their series
            continue
        if "ImagePositionPatient" in head and "Rows" in head:
            found.setdefault(str(head.SeriesInstanceUID), Series(str(head.SeriesInstanceUID))).slices.append(
                (file, head)
            )
    return found


def _normal(head: Any) -> np.ndarray:
    direction = np.array(head.ImageOrientationPatient, dtype=float)
    return np.cross(direction[:3], direction[3:])
