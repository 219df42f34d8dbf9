"""3D Slicer's segmentations, read back by pynrrd and by our own source."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import annotruth as at
from annotruth.io.exports import export_result
from annotruth.io.results import read_result

nrrd = pytest.importorskip("nrrd", reason="pynrrd is not installed")


def test_volumes_come_back_in_their_place(fused_volumes: Path, tmp_path: Path) -> None:
    out = export_result(fused_volumes, tmp_path / "out" / "fused", "slicer")
    again, [item] = at.load(out), read_result(fused_volumes).items
    assert (again.items, again.classes) == (("P 7",), ("background", "liver", "vein"))
    np.testing.assert_array_equal(again.masks[0, 0], item.read_labels())
    voxels, header = nrrd.read(str(out / "P 7.seg.nrrd"))
    np.testing.assert_array_equal(voxels, item.read_labels())
    np.testing.assert_allclose(header["space origin"], [5, 6, 7])
    np.testing.assert_allclose(header["space directions"], np.diag([1.5, 2, 3]))
    assert (header["Segment1_Name"], header["Segment1_LabelValue"]) == ("vein", "2")


def test_disputed_voxels_lie_in_a_layer_of_their_own(fused_volumes: Path, tmp_path: Path) -> None:
    out = export_result(fused_volumes, tmp_path / "out" / "fused", "slicer", disputed=0.8)
    voxels, header = nrrd.read(str(out / "P 7.seg.nrrd"))
    assert voxels.shape == (2, 10, 8, 4)
    assert (header["Segment2_Name"], header["Segment2_Layer"], header["Segment2_LabelValue"]) == ("disputed", "1", "1")
    np.testing.assert_array_equal(
        at.load(out).masks[0, 0], read_result(fused_volumes, disputed=0.8).items[0].read_labels()
    )


def test_a_plane_is_a_volume_of_one_slice(fused: Path, tmp_path: Path) -> None:
    out = export_result(fused, tmp_path / "out", "slicer")
    assert nrrd.read(str(out / "a.seg.nrrd"))[0].shape == (8, 9, 1)
