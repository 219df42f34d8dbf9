"""DICOM: segmentations that highdicom wrote, and contours, on a small series."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.io import check, find_source, import_source
from annotruth.io.sources.checks import CHECKS

pydicom = pytest.importorskip("pydicom", reason="pydicom is not installed")
highdicom = pytest.importorskip("highdicom", reason="highdicom is not installed")

ROWS, COLUMNS, SLICES = 8, 10, 4


@pytest.fixture
def series(tmp_path: Path) -> list[Any]:
    """Slices of 2×1.5 mm, 3 mm apart, written in no order."""
    uid, study, frame = (pydicom.uid.generate_uid() for _ in range(3))
    slices = []
    for number in (2, 0, 3, 1):
        meta = pydicom.dataset.FileMetaDataset()
        meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
        meta.MediaStorageSOPClassUID = pydicom.uid.CTImageStorage
        meta.MediaStorageSOPInstanceUID = pydicom.uid.generate_uid()
        head = pydicom.dataset.FileDataset("", {}, file_meta=meta, preamble=b"\0" * 128)
        head.SOPClassUID, head.SOPInstanceUID = meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID
        head.PatientID, head.PatientName, head.PatientBirthDate, head.PatientSex = "P 7", "X", "", "O"
        head.StudyInstanceUID, head.SeriesInstanceUID, head.FrameOfReferenceUID = study, uid, frame
        head.StudyID, head.SeriesNumber, head.InstanceNumber, head.Modality = "1", 1, number + 1, "CT"
        head.StudyDate, head.StudyTime, head.AccessionNumber, head.ReferringPhysicianName = "20200101", "000000", "", ""
        head.Rows, head.Columns, head.PixelSpacing, head.SliceThickness = ROWS, COLUMNS, [2, 1.5], 3
        head.ImageOrientationPatient, head.ImagePositionPatient = [1, 0, 0, 0, 1, 0], [5, 6, 7 + 3 * number]
        head.BitsAllocated = head.BitsStored = 16
        head.HighBit, head.PixelRepresentation, head.SamplesPerPixel = 15, 0, 1
        head.PhotometricInterpretation, head.RescaleSlope, head.RescaleIntercept = "MONOCHROME2", 2, -10
        head.PixelData = np.full((ROWS, COLUMNS), number, np.uint16).tobytes()
        (tmp_path / "x" / "ct").mkdir(parents=True, exist_ok=True)
        head.save_as(tmp_path / "x" / "ct" / f"{number}.dcm", enforce_file_format=True)
        slices.append(head)
    return slices


def segmentation(series: list[Any], marked: np.ndarray, names: tuple[str, ...], creator: str | None) -> Any:
    """``marked`` is (slices, rows, columns) of segment numbers, in the order of places."""
    ordered = sorted(series, key=lambda head: head.ImagePositionPatient[2])
    described = [
        highdicom.seg.SegmentDescription(
            number, name, pydicom.sr.codedict.codes.SCT.Organ, pydicom.sr.codedict.codes.SCT.Liver,
            highdicom.seg.SegmentAlgorithmTypeValues.MANUAL,
        )
        for number, name in enumerate(names, 1)
    ]  # fmt: skip
    return highdicom.seg.Segmentation(
        ordered, marked.astype(np.uint8), "BINARY", described, pydicom.uid.generate_uid(), 2,
        pydicom.uid.generate_uid(), 1, "us", "us", "1", "1", content_creator_name=creator,
    )  # fmt: skip


@pytest.fixture
def marked() -> np.ndarray:
    marked = np.zeros((SLICES, ROWS, COLUMNS), dtype=np.uint8)
    marked[1, 2:5, 3:9] = 1
    marked[2, 5:7, 1:3] = 2
    return marked


@pytest.fixture
def folder(tmp_path: Path, series: list[Any], marked: np.ndarray) -> Path:
    for rater, creator in (("a", "Lee^Ann"), ("bob", None)):
        (tmp_path / "x" / rater).mkdir(parents=True)
        segmentation(series, marked, ("liver", "vein"), creator).save_as(tmp_path / "x" / rater / "seg.dcm")
    return tmp_path / "x"


def test_segmentations_lie_on_their_series(folder: Path, marked: np.ndarray) -> None:
    found = at.load(folder)
    assert (found.items, found.classes) == (("P 7",), ("background", "liver", "vein"))
    assert found.raters == ("Lee Ann", "bob")
    for mask in found.masks[0]:
        np.testing.assert_array_equal(mask.transpose(2, 1, 0), marked)
    assert found.images[0, 0, 0, 0].tolist() == [-10, -8, -6, -4]
    assert found.spacing(0) == (1.5, 2, 3)
    assert check(folder) == []


@pytest.mark.parametrize("common", CHECKS, ids=lambda common: common.__name__)
def test_common_checks(folder: Path, common: Any) -> None:
    common(find_source(folder), folder)


def test_an_import_keeps_the_place(folder: Path, tmp_path: Path) -> None:
    import_source(folder, tmp_path / "cases")
    file = nibabel.load(tmp_path / "cases" / "raters" / "bob" / "P 7.nii.gz")
    np.testing.assert_allclose(file.affine @ [2, 3, 1, 1], [-(5 + 2 * 1.5), -(6 + 3 * 2), 7 + 3, 1])
    assert at.load(tmp_path / "cases").groups == ("P 7",)


def test_without_the_series_boxes_are_joined(folder: Path, series: list[Any]) -> None:
    other = np.zeros((SLICES, ROWS, COLUMNS), dtype=np.uint8)
    other[0, 0, 0] = other[1, 0, 1] = 1
    segmentation(series, other, ("liver",), "Cy").save_as(folder / "cy.dcm")
    for file in (folder / "ct").iterdir():
        file.unlink()
    masks = at.load(folder).masks[0]
    assert [int((mask == 1).sum()) for mask in masks] == [18, 18, 2]


def structures(series: list[Any], path: Path, contours: list[list[float]], kind: str = "CLOSED_PLANAR") -> Path:
    dataset = pydicom.dataset
    meta = dataset.FileMetaDataset()
    meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    meta.MediaStorageSOPClassUID = pydicom.uid.RTStructureSetStorage
    meta.MediaStorageSOPInstanceUID = pydicom.uid.generate_uid()
    head = dataset.FileDataset("", {}, file_meta=meta, preamble=b"\0" * 128)
    head.SOPClassUID, head.SOPInstanceUID = meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID
    head.PatientID, head.Modality, head.OperatorsName = "P 7", "RTSTRUCT", "Dora"
    head.StudyInstanceUID, head.SeriesInstanceUID = series[0].StudyInstanceUID, pydicom.uid.generate_uid()
    head.StructureSetDate = datetime.date(2020, 1, 1).strftime("%Y%m%d")
    of_series = dataset.Dataset()
    of_series.SeriesInstanceUID = series[0].SeriesInstanceUID
    study = dataset.Dataset()
    study.RTReferencedSeriesSequence = [of_series]
    frame = dataset.Dataset()
    frame.RTReferencedStudySequence = [study]
    head.ReferencedFrameOfReferenceSequence = [frame]
    roi = dataset.Dataset()
    roi.ROINumber, roi.ROIName = 4, "liver"
    head.StructureSetROISequence = [roi]
    drawn = dataset.Dataset()
    drawn.ReferencedROINumber, drawn.ContourSequence = 4, []
    for points in contours:
        contour = dataset.Dataset()
        contour.ContourGeometricType, contour.ContourData = kind, points
        contour.NumberOfContourPoints = len(points) // 3
        drawn.ContourSequence.append(contour)
    head.ROIContourSequence = [drawn]
    path.parent.mkdir(parents=True, exist_ok=True)
    head.save_as(path, enforce_file_format=True)
    return path


def rectangle(left: float, top: float, right: float, bottom: float, z: float) -> list[float]:
    return [left, top, z, right, top, z, right, bottom, z, left, bottom, z]


def test_contours_are_filled_on_the_series(tmp_path: Path, series: list[Any]) -> None:
    """Pixel centres are at 5 + 1.5 c and 6 + 2 r millimetres: columns 2 to 6 and rows 1 to 4, without a hole."""
    outer = rectangle(5 + 1.5 * 1.5, 6 + 2 * 0.5, 5 + 1.5 * 6.5, 6 + 2 * 4.5, 10)
    hole = rectangle(5 + 1.5 * 2.5, 6 + 2 * 1.5, 5 + 1.5 * 4.5, 6 + 2 * 2.5, 10)
    structures(series, tmp_path / "x" / "rt" / "s.dcm", [outer, hole])
    found = at.load(tmp_path / "x")
    expected = np.zeros((COLUMNS, ROWS, SLICES), dtype=np.uint8)
    expected[2:7, 1:5, 1] = 1
    expected[3:5, 2, 1] = 0
    assert (found.raters, found.classes) == (("Dora",), ("background", "liver"))
    np.testing.assert_array_equal(found.masks[0, 0], expected)


@pytest.mark.parametrize(
    ("contour", "kind", "message"),
    [
        (rectangle(6, 7, 12, 12, 11.4), "CLOSED_PLANAR", "does not lie in a slice"),
        (rectangle(6, 7, 12, 12, 70), "CLOSED_PLANAR", "lies outside the series"),
        (rectangle(6, 7, 12, 12, 10), "POINT", "only contours without an area (POINT)"),
    ],
)
def test_bad_contours_are_named(tmp_path: Path, series: list[Any], contour: Any, kind: str, message: str) -> None:
    structures(series, tmp_path / "x" / "rt" / "s.dcm", [contour], kind)
    [problem, *_] = check(tmp_path / "x")
    assert problem.rater == "Dora"
    assert message in problem.message


def test_points_among_contours_are_left_out(tmp_path: Path, series: list[Any]) -> None:
    path = structures(series, tmp_path / "x" / "rt" / "s.dcm", [rectangle(6, 7, 12, 12, 10), [6, 7, 10]])
    head = pydicom.dcmread(path)
    head.ROIContourSequence[0].ContourSequence[1].ContourGeometricType = "POINT"
    head.save_as(path, enforce_file_format=True)
    assert at.load(tmp_path / "x").masks.any()
    assert any("1 contours have no area (POINT)" in problem.message for problem in check(tmp_path / "x"))


def test_contours_need_their_series(tmp_path: Path, series: list[Any]) -> None:
    path = structures(series, tmp_path / "elsewhere" / "s.dcm", [rectangle(6, 7, 12, 12, 10)])
    with pytest.raises(InputError, match="contours need the series they were drawn on"):
        at.load(path)
    assert at.load(path, images=tmp_path / "x" / "ct").masks.any()


def test_a_missing_slice_is_told(folder: Path) -> None:
    (folder / "ct" / "1.dcm").unlink()
    assert any("not evenly spaced" in problem.message for problem in check(folder))
