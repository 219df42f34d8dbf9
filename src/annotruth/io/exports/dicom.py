"""DICOM SEG: a segment per class, with references to the slices of the series that was drawn on."""

from __future__ import annotations

from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from annotruth.errors import InputError
from annotruth.io.dicom_files import Series, find_series
from annotruth.io.exports import Export, register_export
from annotruth.io.extras import need
from annotruth.io.grids import Grid, place_in
from annotruth.io.problems import Progress
from annotruth.io.results import Result, ResultItem
from annotruth.io.writing import atomic


@register_export
class DicomSeg(Export):
    """<case>.dcm on the grid of its series: what each voxel is, or how probable each class is there."""

    key = "dicom"
    description = "DICOM SEG with the source's references"
    options: ClassVar[dict[str, str]] = {
        "series": "folder with the DICOM files that the cases were imported from",
        "probabilities": "true: fractional segments, the probability of each class",
    }

    def write(self, result: Result, folder: Path, progress: Progress, **options: Any) -> None:
        need("highdicom", "dicom")
        if "series" not in options:
            raise InputError("DICOM SEG refers to the slices that were drawn on: --option series=FOLDER names them.")
        found = find_series(Path(options["series"]))
        for done, item in enumerate(result.items, 1):
            series = _series_of(item, found)
            with atomic(folder / f"{item.name}.dcm") as temporary:
                _segmentation(result, item, series, bool(options.get("probabilities"))).save_as(temporary)
            progress(done, len(result.items))


def _series_of(item: ResultItem, found: dict[str, Series]) -> Series:
    """The series an item was imported from, or the only one of the patient it is named after."""
    if item.origin in found:
        return found[item.origin]
    named = [series for series in found.values() if series.patient in (item.origin, item.name)]
    if len(named) != 1:
        raise InputError(
            f"{item.file} (case {item.name}): {len(named)} series are of this name, not one. Give --cases."
        )
    return named[0]


def _segmentation(result: Result, item: ResultItem, series: Series, fractional: bool) -> Any:
    highdicom, pydicom = need("highdicom", "dicom"), need("pydicom", "dicom")
    codes, version = pydicom.sr.codedict.codes, version_of("annotruth")
    algorithm = highdicom.AlgorithmIdentificationSequence(result.maker, codes.DCM.ArtificialIntelligence, version)
    voxels = _probabilities(result, item, series) if fractional else _labels(result, item, series)
    described = [
        highdicom.seg.SegmentDescription(
            number, name[:64], codes.SCT.SpatialAndRelationalConcept,
            highdicom.sr.CodedConcept(str(number), "99ANNOTRUTH", name[:64]),  # what a class means, nobody has told
            highdicom.seg.SegmentAlgorithmTypeValues.SEMIAUTOMATIC, algorithm,
        )
        for number, name in enumerate(result.classes[1:], 1)
    ]  # fmt: skip
    sources = [pydicom.dcmread(file) for file, _ in series.ordered()]
    return highdicom.seg.Segmentation(
        sources, np.ascontiguousarray(voxels), "FRACTIONAL" if fractional else "BINARY", described,
        pydicom.uid.generate_uid(), 100, pydicom.uid.generate_uid(), 1, "annotruth", result.maker[:64], version, "0",
        content_creator_name="annotruth", content_label="FUSED",
    )  # fmt: skip


def _labels(result: Result, item: ResultItem, series: Series) -> np.ndarray:
    """Class numbers (slices, rows, columns) on the grid of the series."""
    labels = item.read_labels()
    return _on_series(np.where(labels < len(result.classes), labels, 0), item, series.grid())


def _probabilities(result: Result, item: ResultItem, series: Series) -> np.ndarray:
    """Probabilities (slices, rows, columns, classes but the background) on the grid of the series."""
    if item.read_probabilities is None or result.has_disputed:
        raise InputError(
            f"{item.file} (case {item.name}): probabilities are exported where they are known, and without --disputed."
        )
    grid, chances = series.grid(), np.clip(item.read_probabilities(), 0, 1)
    return np.stack([_on_series(chance, item, grid) for chance in chances[1:]], axis=-1)


def _on_series(voxels: np.ndarray, item: ResultItem, grid: Grid) -> np.ndarray:
    if voxels.ndim != 3:
        raise InputError(f"{item.file} (case {item.name}): a plane, and a series is a volume.")
    return place_in(Grid(voxels.shape, item.affine), grid).paste(voxels, grid.shape).transpose(2, 1, 0)
