"""3D Slicer's segmentations, written by pynrrd as Slicer writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.io import check, find_source, import_source
from annotruth.io.sources.checks import CHECKS

nrrd = pytest.importorskip("nrrd", reason="pynrrd is not installed")

SHAPE = (6, 5, 4)


def write(path: Path, voxels: np.ndarray, segments: list[tuple[str, int, int]], origin: Any = (10, 20, 30)) -> Path:
    """Segments as (name, layer, value); millimetres to the left and to the back, as Slicer counts."""
    directions: Any = np.diag([2.0, 2.0, 3.0])
    header: dict[str, Any] = {"space": "left-posterior-superior", "space origin": np.array(origin, float)}
    header["space directions"] = directions if voxels.ndim == 3 else np.vstack([np.full(3, np.nan), directions])
    header["kinds"] = ["list"] * (voxels.ndim == 4) + ["domain"] * 3
    for n, (name, layer, value) in enumerate(segments):
        header |= {f"Segment{n}_ID": f"Segment_{n}", f"Segment{n}_Name": name, f"Segment{n}_Layer": str(layer)}
        header[f"Segment{n}_LabelValue"] = str(value)
    path.parent.mkdir(parents=True, exist_ok=True)
    nrrd.write(str(path), voxels, header)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    voxels = np.zeros(SHAPE, dtype=np.uint8)
    voxels[1:3, 1:4, 1] = 2
    for rater in ("ann", "bob"):
        write(tmp_path / "x" / rater / "p1.seg.nrrd", voxels, [("liver", 0, 2), ("vein", 0, 5)])
    return tmp_path / "x"


def test_raters_are_folders_and_segments_are_classes(folder: Path) -> None:
    found = at.load(folder)
    assert (found.items, found.raters, found.classes) == (("p1",), ("ann", "bob"), ("background", "liver", "vein"))
    assert found.masks.shape == (1, 2, *SHAPE)
    assert (found.masks[0, 0] == 1).sum() == 6
    assert found.spacing(0) == (2, 2, 3)


@pytest.mark.parametrize("common", CHECKS, ids=lambda common: common.__name__)
def test_common_checks(folder: Path, common: Any) -> None:
    common(find_source(folder), folder)


def test_layers_overlap_and_the_last_segment_counts(tmp_path: Path) -> None:
    voxels = np.zeros((2, *SHAPE), dtype=np.uint8)
    voxels[0, :4] = 1
    voxels[1, 2:] = 1
    found = at.load(write(tmp_path / "ann" / "p1.seg.nrrd", voxels, [("liver", 0, 1), ("vein", 1, 1)]))
    assert found.masks[0, 0, :, 0, 0].tolist() == [1, 1, 2, 2, 2, 2]


def test_cropped_segmentations_lie_in_the_images_box(folder: Path, tmp_path: Path) -> None:
    small = np.full((2, 3, 1), 2, dtype=np.uint8)
    write(folder / "cy" / "p1.seg.nrrd", small, [("liver", 0, 2)], origin=(12, 22, 33))
    masks = at.load(folder).masks[0]
    np.testing.assert_array_equal(masks[0], masks[2])
    nrrd.write(str(folder / "p1.nrrd"), np.arange(120.0).reshape(SHAPE), {
        "space": "left-posterior-superior", "space origin": np.array([10.0, 20, 30]),
        "space directions": np.diag([2.0, 2.0, 3.0]),
    })  # fmt: skip
    imported = import_source(folder, tmp_path / "cases")
    assert imported.raters == {"ann": 1, "bob": 1, "cy": 1}
    file = nibabel.load(tmp_path / "cases" / "raters" / "cy" / "p1.nii.gz")
    np.testing.assert_allclose(file.affine, np.array([[-2, 0, 0, -10], [0, -2, 0, -20], [0, 0, 3, 30], [0, 0, 0, 1]]))
    again = at.load(tmp_path / "cases")
    np.testing.assert_array_equal(again.masks[0], masks)
    np.testing.assert_array_equal(again.images[0, 0].ravel(), np.arange(120))


def test_images_may_be_nifti(folder: Path, tmp_path: Path) -> None:
    place = np.array([[-2.0, 0, 0, -10], [0, -2, 0, -20], [0, 0, 3, 30], [0, 0, 0, 1]])
    (tmp_path / "images").mkdir()
    nibabel.save(nibabel.Nifti1Image(np.zeros(SHAPE, np.int16), place), tmp_path / "images" / "p1.nii.gz")
    import_source(folder, tmp_path / "cases", images=tmp_path / "images")
    assert check(tmp_path / "cases")[0].severity == "warning"  # vein is nowhere
    nibabel.save(nibabel.Nifti1Image(np.zeros(SHAPE, np.int16), np.eye(4)), tmp_path / "images" / "p1.nii.gz")
    with pytest.raises(InputError, match="do not fall on the image's"):
        at.load(folder, images=tmp_path / "images")


def test_what_is_no_segmentation_is_named(folder: Path, tmp_path: Path) -> None:
    nrrd.write(str(folder / "bob" / "p1.seg.nrrd"), np.zeros(SHAPE, np.uint8))
    imported = import_source(folder, tmp_path / "cases")
    [problem] = imported.skipped
    assert (problem.case, problem.rater) == ("p1", "bob")
    assert "names no segment" in problem.message
