"""DICOM: segmentations (SEG) and contours (RTSTRUCT), with the series they were drawn on."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from annotruth.errors import InputError, shorten
from annotruth.io.contents import Contents
from annotruth.io.dicom_files import SEGMENTATIONS, STRUCTURES, Series, find_series, is_of, list_candidates, read_head
from annotruth.io.drawn import parsing
from annotruth.io.extras import need
from annotruth.io.grids import LPS_TO_RAS, Grid
from annotruth.io.problems import Problem, Report
from annotruth.io.rasterise import polygon_pixels
from annotruth.io.sources import register
from annotruth.io.sources.imports import ImportSource
from annotruth.io.volumes import Volumes

CLOSED = "CLOSED_PLANAR"


@register
class Dicom(ImportSource):
    """SEG and RTSTRUCT files in a folder, and the slices of the series they refer to in it or in --images."""

    name = "DICOM folder"
    key = "dicom"
    description = "DICOM segmentations (SEG) or contours (RTSTRUCT), and the series they were drawn on"
    kind = "masks"
    holds = ("image", "mask", "polygon", "3D")
    identity = "ContentCreatorName of SEG, OperatorsName or ReviewerName of RTSTRUCT; otherwise the folder's name"
    inputs = ("images", "duplicates")

    def matches(self, path: Path) -> bool:
        return bool(_files(path))

    def read(self, path: Path, report: Report, **inputs: Any) -> Contents:
        need("pydicom", "dicom")
        volumes = Volumes(report, inputs.get("duplicates", "error"))
        images: Path | None = inputs.get("images")
        series = find_series(images if images is not None else path if path.is_dir() else path.parent)
        _report_damaged(path, report)
        for file in _files(path):
            with parsing(report, file):
                head = read_head(file)
                is_structure = is_of(file, STRUCTURES)
                uid, rater = _series_of(head, is_structure), _rater_of(head, file, is_structure)
                patient = str(head.get("PatientID", "") or "")
                with parsing(report, file, patient or uid, rater):
                    grid = _add_image(volumes, uid, patient, series.get(uid))
                    if is_structure:
                        _add_structures(volumes, file, head, uid, rater, grid, report)
                    else:
                        _add_segments(volumes, file, uid, rater)
        if not series:
            volumes.notes.append("The series that was drawn on was not found, so the cases have no images (--images).")
        return volumes.contents()


def _report_damaged(path: Path, report: Report) -> None:
    """Report files that are DICOM by their name alone, of which nobody knows whose labels they held."""
    for file in list_candidates(path) if path.is_dir() else []:
        if file.suffix.lower() in (".dcm", ".dicom") and not is_of(file, (b"",)):
            message = "the file is not DICOM: it does not begin as such."
            report(Problem("fatal", file, None, None, message, "Replace or remove it."))


def _files(path: Path) -> list[Path]:
    files = [path] if path.is_file() else list_candidates(path) if path.is_dir() else []
    return [file for file in files if is_of(file, (*SEGMENTATIONS, *STRUCTURES))]


def _series_of(head: Any, is_structure: bool) -> str:
    """The series that was drawn on."""
    if is_structure:
        study = head.ReferencedFrameOfReferenceSequence[0].RTReferencedStudySequence[0]
        return str(study.RTReferencedSeriesSequence[0].SeriesInstanceUID)
    if head.get("ReferencedSeriesSequence"):
        return str(head.ReferencedSeriesSequence[0].SeriesInstanceUID)
    return str(head.get("FrameOfReferenceUID", head.StudyInstanceUID))


def _rater_of(head: Any, file: Path, is_structure: bool) -> str:
    for name in ("OperatorsName", "ReviewerName") if is_structure else ("ContentCreatorName",):
        person = str(head.get(name, "") or "").replace("^", " ").strip()
        if person:
            return person
    return file.parent.name


def _add_image(volumes: Volumes, uid: str, patient: str, series: Series | None) -> Grid | None:
    grid = None if series is None else series.grid()
    volumes.add_image(uid, patient or uid, None if series is None else series.image(), grid, patient or None)
    return grid


def _add_segments(volumes: Volumes, file: Path, uid: str, rater: str) -> None:
    segmentation = _open_segmentation(file)
    geometry = segmentation.get_volume_geometry()
    if geometry is None:
        raise InputError("the segmentation is no regular volume (of a microscope?), which cannot be read yet.")
    labels = [
        str(segmentation.get_segment_description(number).segment_label) for number in segmentation.segment_numbers
    ]
    slices, rows, columns = geometry.spatial_shape
    volumes.add(uid, file, rater, rater, labels, Grid((columns, rows, slices), _turn(geometry.affine)), read_segments)


def _turn(affine: np.ndarray) -> np.ndarray:
    """From highdicom's order of axes, slices first, and DICOM's millimetres to ours."""
    return LPS_TO_RAS @ np.asarray(affine, dtype=float)[:, [2, 1, 0, 3]]


def _open_segmentation(file: Path) -> Any:
    highdicom = need("highdicom", "dicom")
    try:
        return highdicom.seg.segread(str(file))
    except Exception as error:  # a damaged file can raise anything inside its parser
        raise InputError(
            f"cannot be read ({' '.join(str(error).split())}). The file is damaged; replace it."
        ) from error


def read_segments(file: Path, classes: tuple[str, ...]) -> np.ndarray:
    """Read class numbers (columns, rows, slices); where segments overlap, the last counts; fractions from a half on."""
    segmentation = _open_segmentation(file)
    numbers = {name: number for number, name in enumerate(classes)}
    labels: np.ndarray | None = None
    for segment in segmentation.segment_numbers:
        volume = segmentation.get_volume(segment_numbers=[segment])
        marked = np.asarray(volume.array)[..., 0] >= 0.5
        labels = np.zeros(marked.shape, dtype=np.uint8) if labels is None else labels
        labels[marked] = numbers.get(str(segmentation.get_segment_description(segment).segment_label), 0)
    if labels is None:
        raise InputError("the segmentation has no segment. Remove the file.")
    return labels.transpose(2, 1, 0)


def _add_structures(
    volumes: Volumes, file: Path, head: Any, uid: str, rater: str, grid: Grid | None, report: Report
) -> None:
    if grid is None:
        raise InputError(f"contours need the series they were drawn on, {uid}. Name its folder, --images.")
    bare = _without_area(head)
    if bare:
        message = f"{len(bare)} contours have no area ({shorten(sorted(set(bare)))})."
        advice = "They are in no mask; the rest of the drawing is kept."
        report(Problem("warning", file, str(head.get("PatientID") or uid), rater, message, advice))
    names = [str(roi.ROIName) for roi in head.StructureSetROISequence]
    volumes.add(uid, file, rater, rater, names, grid, partial(read_structures, grid=grid))


def _contours(head: Any) -> list[Any]:
    return [each for own in head.get("ROIContourSequence") or [] for each in own.get("ContourSequence") or []]


def _without_area(head: Any) -> list[str]:
    """Kinds of the contours that are points or open lines; refuses a file with nothing else."""
    contours = _contours(head)
    bare = [str(each.ContourGeometricType) for each in contours if each.ContourGeometricType != CLOSED]
    if bare and len(bare) == len(contours):
        raise InputError(f"there are only contours without an area ({shorten(sorted(set(bare)))}). Remove the file.")
    return bare


def read_structures(file: Path, classes: tuple[str, ...], grid: Grid) -> np.ndarray:
    """Fill contours slice by slice, (columns, rows, slices); one inside another of the same structure is a hole."""
    head = read_head(file)
    names = {int(roi.ROINumber): str(roi.ROIName) for roi in head.StructureSetROISequence}
    numbers = {name: number for number, name in enumerate(classes)}
    labels = np.zeros(grid.shape, dtype=np.uint8)
    to_voxels = np.linalg.inv(grid.affine) @ LPS_TO_RAS
    for contours in head.get("ROIContourSequence") or []:
        name = names[int(contours.ReferencedROINumber)]
        by_slice: dict[int, list[np.ndarray]] = defaultdict(list)
        for contour in contours.get("ContourSequence") or []:
            if contour.ContourGeometricType != CLOSED:
                continue
            points = np.array(contour.ContourData, dtype=float).reshape(-1, 3)
            voxels = points @ to_voxels[:3, :3].T + to_voxels[:3, 3]
            depth = np.rint(voxels[:, 2])
            if np.abs(voxels[:, 2] - depth).max() > 0.1 or np.ptp(depth) > 0:
                raise InputError(f"a contour of {name} does not lie in a slice of the series. Export it anew.")
            if not 0 <= depth[0] < grid.shape[2]:
                raise InputError(f"a contour of {name} lies outside the series. Is it the right one?")
            by_slice[int(depth[0])].append(voxels[:, :2] + 0.5)  # DICOM counts from pixels' centres, we from edges
        for depth_number, rings in by_slice.items():
            window, inside = polygon_pixels(rings, (grid.shape[1], grid.shape[0]))
            labels[:, :, depth_number].T[window][inside] = numbers[name]
    return labels
