"""DICOM SEG with references to its series, read back by highdicom and by our own source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.io.exports import export_result
from annotruth.io.results import read_result

pydicom = pytest.importorskip("pydicom", reason="pydicom is not installed")
highdicom = pytest.importorskip("highdicom", reason="highdicom is not installed")


@pytest.fixture
def series(tmp_path: Path) -> Path:
    """Four slices on the grid of ``fused_volumes``."""
    uid, study, frame = (pydicom.uid.generate_uid() for _ in range(3))
    for number in range(4):
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
        head.Rows, head.Columns, head.PixelSpacing, head.SliceThickness = 8, 10, [2, 1.5], 3
        head.ImageOrientationPatient, head.ImagePositionPatient = [1, 0, 0, 0, 1, 0], [5, 6, 7 + 3 * number]
        head.BitsAllocated = head.BitsStored = 16
        head.HighBit, head.PixelRepresentation, head.SamplesPerPixel = 15, 0, 1
        head.PhotometricInterpretation = "MONOCHROME2"
        head.PixelData = np.zeros((8, 10), np.uint16).tobytes()
        (tmp_path / "ct").mkdir(exist_ok=True)
        head.save_as(tmp_path / "ct" / f"{number}.dcm", enforce_file_format=True)
    return tmp_path / "ct"


def test_segments_refer_to_their_slices(fused_volumes: Path, series: Path, tmp_path: Path) -> None:
    out = export_result(fused_volumes, tmp_path / "out" / "fused", "dicom", series=str(series))
    again, [item] = at.load(out, images=series), read_result(fused_volumes).items
    assert (again.items, again.classes) == (("P 7",), ("background", "liver", "vein"))
    np.testing.assert_array_equal(again.masks[0, 0], item.read_labels())
    segmentation = highdicom.seg.segread(str(out / "P 7.dcm"))
    referred = {uid for _, _, uid in segmentation.get_source_image_uids()}
    assert referred <= {pydicom.dcmread(file).SOPInstanceUID for file in series.iterdir()}
    volume: Any = segmentation.get_volume(combine_segments=True)
    assert int((np.asarray(volume.array) == 2).sum()) == 4


def test_probabilities_are_fractional_segments(fused_volumes: Path, series: Path, tmp_path: Path) -> None:
    out = export_result(fused_volumes, tmp_path / "out", "dicom", series=str(series), probabilities=True)
    segmentation = highdicom.seg.segread(str(out / "P 7.dcm"))
    [item] = read_result(fused_volumes).items
    assert item.read_probabilities is not None
    volume = segmentation.get_volume()
    known = item.read_probabilities()[1:]
    for number, plane in enumerate(np.asarray(volume.array)):  # in either direction, without empty ones at the ends
        depth = round((volume.affine[2, 3] + number * volume.affine[2, 0] - 7) / 3)
        np.testing.assert_allclose(plane.transpose(2, 1, 0), known[..., depth], atol=1 / 255)
    with pytest.raises(InputError, match="without --disputed"):
        export_result(fused_volumes, tmp_path / "two", "dicom", series=str(series), probabilities=True, disputed=0.8)


def test_disputed_voxels_are_a_segment_of_their_own(fused_volumes: Path, series: Path, tmp_path: Path) -> None:
    out = export_result(fused_volumes, tmp_path / "out" / "fused", "dicom", series=str(series), disputed=0.8)
    segmentation = highdicom.seg.segread(str(out / "P 7.dcm"))
    named = [segmentation.get_segment_description(number).segment_label for number in segmentation.segment_numbers]
    assert named == ["liver", "vein", "disputed"]
    expected = read_result(fused_volumes, disputed=0.8).items[0].read_labels()
    assert (expected == 3).any()
    np.testing.assert_array_equal(at.load(out, images=series).masks[0, 0], expected)


def test_a_series_is_needed_and_must_be_the_cases(
    fused_volumes: Path, fused: Path, series: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="--option series=FOLDER"):
        export_result(fused_volumes, tmp_path / "one", "dicom")
    with pytest.raises(InputError, match="0 series are of this name"):
        export_result(fused, tmp_path / "two", "dicom", series=str(series))
