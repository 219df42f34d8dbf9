"""NIfTI: scaling, axes, affines and units, and heads that lie."""

from __future__ import annotations

import gzip

import nibabel
import numpy as np
import pytest

from annotruth.errors import InputError
from annotruth.io import files, writing

RNG = np.random.default_rng(0)

AFFINE = np.array([[0.0, -2.0, 0.0, 10.0], [1.5, 0.0, 0.0, -20.0], [0.0, 0.0, 3.0, 5.0], [0.0, 0.0, 0.0, 1.0]])


def test_nifti_scaling_is_applied_and_whole_floats_are_labels(tmp_path):
    file = nibabel.Nifti1Image(np.array([[[0.0, 1.0], [2.0, 1.0]]]), np.eye(4))
    nibabel.save(file, tmp_path / "a.nii")
    read = files.read_mask(tmp_path / "a.nii", "")
    assert read.dtype == np.int64
    np.testing.assert_array_equal(read, [[[0, 1], [2, 1]]])
    scaled = nibabel.Nifti1Image(np.array([[[-1000.0, 0.5], [24.0, 1.0]]]), np.eye(4))
    scaled.set_data_dtype(np.int16)
    nibabel.save(scaled, tmp_path / "b.nii")
    np.testing.assert_allclose(
        files.read_image(tmp_path / "b.nii", 3, "")[0], [[[-1000.0, 0.5], [24.0, 1.0]]], atol=0.02
    )


def test_nifti_masks_of_several_volumes_are_refused_and_idle_axes_dropped(tmp_path, put):
    idle = put(tmp_path / "idle.nii", np.ones((3, 4, 5, 1, 1), dtype=np.uint8))
    assert files.mask_header(idle, "").shape == files.read_mask(idle, "").shape == (3, 4, 5)
    several = put(tmp_path / "several.nii", np.ones((3, 4, 5, 2), dtype=np.uint8))
    with pytest.raises(InputError, match="here: the mask holds 2 volumes"):
        files.mask_header(several, "here")


def test_nifti_keeps_affine_codes_and_units_of_its_source(tmp_path):
    source = nibabel.Nifti2Image(np.zeros((5, 7, 6, 2), dtype=np.int16), AFFINE)
    source.set_sform(AFFINE, code="mni")
    source.set_qform(AFFINE, code="scanner")
    source.header.set_xyzt_units("mm", "sec")
    source.header["cal_max"] = 900
    nibabel.save(source, tmp_path / "image.nii.gz")
    labels = RNG.integers(0, 2, (5, 7, 6)).astype(np.uint8)
    writing.write_mask_file(tmp_path / "out" / "m.nii.gz", labels, tmp_path / "image.nii.gz")
    written = nibabel.load(tmp_path / "out" / "m.nii.gz")
    np.testing.assert_allclose(written.affine, AFFINE)
    assert (int(written.header["sform_code"]), int(written.header["qform_code"])) == (4, 1)
    assert written.header.get_xyzt_units()[0] == "mm"
    assert written.header["cal_max"] == 0
    assert written.get_data_dtype() == np.uint8
    np.testing.assert_allclose(written.header.get_zooms(), source.header.get_zooms()[:3])
    np.testing.assert_array_equal(np.asarray(written.dataobj), labels)


def test_a_nifti_head_that_promises_too_much_is_no_crash(tmp_path):
    header = nibabel.Nifti1Header()
    header.set_data_shape((30000, 30000, 30000))
    header.set_data_dtype(np.uint8)
    header["magic"] = b"n+1"
    header["vox_offset"] = 352
    path = tmp_path / "a.nii.gz"
    path.write_bytes(gzip.compress(header.binaryblock + bytes(8)))
    with pytest.raises(InputError, match="here: "):
        files.read_mask(path, "here")
