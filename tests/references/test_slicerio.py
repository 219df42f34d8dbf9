"""Slicer's own library: it reads our segmentations, and we read those it writes, voxel by voxel and in their place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import nibabel
import numpy as np
import pytest

import annotruth as at
from annotruth.io import import_source
from annotruth.io.exports import export_result

IJK_TO_LPS = np.array([[1.5, 0, 0, 5], [0, 2, 0, 6], [0, 0, 3, 7], [0, 0, 0, 1]])


@pytest.fixture
def slicerio(program: Callable[[str], ModuleType]) -> Any:
    return program("slicerio")


def test_it_reads_what_we_write(slicerio: Any, known_volumes: Path, volume: np.ndarray, tmp_path: Path) -> None:
    out = export_result(known_volumes, tmp_path / "out", "slicer")
    read = slicerio.read_segmentation(str(out / "P7.seg.nrrd"))
    assert [(each["name"], each["labelValue"]) for each in read["segments"]] == [("cell", 1), ("wall", 2)]
    np.testing.assert_array_equal(read["voxels"], volume)
    np.testing.assert_allclose(read["ijkToLPS"], IJK_TO_LPS)


def test_we_read_what_it_writes(slicerio: Any, volume: np.ndarray, tmp_path: Path) -> None:
    segmentation = slicerio.create_segmentation(volume.shape, IJK_TO_LPS)
    for number, name in ((1, "cell"), (2, "wall")):
        slicerio.add_segment(segmentation, volume == number, {"id": name, "name": name})
    (tmp_path / "drawn" / "ann").mkdir(parents=True)
    slicerio.write_segmentation(str(tmp_path / "drawn" / "ann" / "P7.seg.nrrd"), segmentation)
    found = at.load(tmp_path / "drawn")
    assert (found.items, found.raters, found.classes) == (("P7",), ("ann",), ("background", "cell", "wall"))
    np.testing.assert_array_equal(found.item_masks(0)[0], volume)
    import_source(tmp_path / "drawn", tmp_path / "cases")
    made = nibabel.load(tmp_path / "cases" / "raters" / "ann" / "P7.nii.gz")
    np.testing.assert_allclose(made.affine, np.diag([-1, -1, 1, 1]) @ IJK_TO_LPS)


def test_segments_that_overlap_are_layers_that_we_read(slicerio: Any, volume: np.ndarray, tmp_path: Path) -> None:
    """It puts the second into a layer of its own; the last segment counts."""
    segmentation, whole = slicerio.create_segmentation(volume.shape, IJK_TO_LPS), np.ones(volume.shape, dtype=bool)
    for name, mask in (("body", whole), ("cell", volume == 1)):
        slicerio.add_segment(segmentation, mask, {"id": name, "name": name})
    assert segmentation["voxels"].ndim == 4
    (tmp_path / "drawn" / "ann").mkdir(parents=True)
    slicerio.write_segmentation(str(tmp_path / "drawn" / "ann" / "P7.seg.nrrd"), segmentation)
    np.testing.assert_array_equal(at.load(tmp_path / "drawn").item_masks(0)[0], 1 + (volume == 1))
