"""nnU-Net's data set: one format, consecutive labels, an ignore label where something is disputed or not labelled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
from PIL import Image

from annotruth.io.exports import export_result


def test_planes_with_images_and_soft_labels(fused: Path, tmp_path: Path) -> None:
    out = export_result(fused, tmp_path / "out", "nnunet")
    content = json.loads((out / "dataset.json").read_text())
    assert content["labels"] == {"background": 0, "cell": 1, "wall": 2}
    assert (content["file_ending"], content["numTraining"], content["channel_names"]) == (".png", 2, {"0": "channel_0"})
    assert sorted(file.name for file in (out / "imagesTr").iterdir()) == ["a_0000.png", "b_0000.png"]
    assert np.unique(np.array(Image.open(out / "labelsTr" / "b.png"))).tolist() == [0, 1, 2]
    soft = np.load(out / "softlabelsTr" / "a.npz")["probabilities"]
    assert soft.shape == (3, 1, 8, 9)
    np.testing.assert_allclose(soft.sum(axis=0), 1, atol=1e-6)


def test_disputed_pixels_are_ignored(fused: Path, tmp_path: Path) -> None:
    out = export_result(fused, tmp_path / "out", "nnunet", disputed=0.8)
    content = json.loads((out / "dataset.json").read_text())
    assert content["labels"] == {"background": 0, "cell": 1, "wall": 2, "ignore": 3}
    assert (np.array(Image.open(out / "labelsTr" / "a.png")) == 3).sum() == 6


def test_volumes_keep_their_place_and_soft_labels_are_turned(fused_volumes: Path, tmp_path: Path) -> None:
    out = export_result(fused_volumes, tmp_path / "out", "nnunet")
    made, given = nibabel.load(out / "labelsTr" / "P 7.nii.gz"), nibabel.load(fused_volumes / "labels" / "P 7.nii.gz")
    np.testing.assert_allclose(made.affine, given.affine)
    np.testing.assert_array_equal(made.get_fdata(), given.get_fdata())
    assert np.load(out / "softlabelsTr" / "P 7.npz")["probabilities"].shape == (3, 4, 8, 10)


def test_other_formats_are_converted_to_one(tmp_path: Path, put: Any) -> None:
    mask = np.zeros((6, 7), dtype=np.uint8)
    mask[2, 3], mask[0] = 1, 255
    put(tmp_path / "x" / "truth" / "a.npy", mask)
    put(tmp_path / "x" / "images" / "a.npy", np.random.default_rng(0).normal(size=(2, 6, 7)))
    out = export_result(tmp_path / "x", tmp_path / "out", "nnunet")
    content = json.loads((out / "dataset.json").read_text())
    assert (content["file_ending"], len(content["channel_names"])) == (".nii.gz", 2)
    assert content["labels"] == {"background": 0, "class_1": 1, "ignore": 2}
    assert sorted(file.name for file in (out / "imagesTr").iterdir()) == ["a_0000.nii.gz", "a_0001.nii.gz"]
    assert nibabel.load(out / "labelsTr" / "a.nii.gz").get_fdata()[0].tolist() == [2] * 7


def test_jpeg_images_become_png(tmp_path: Path, put: Any) -> None:
    put(tmp_path / "x" / "truth" / "a.png", np.eye(8, dtype=np.uint8))
    put(tmp_path / "x" / "images" / "a.jpg", np.full((8, 8, 3), 90, dtype=np.uint8))
    out = export_result(tmp_path / "x", tmp_path / "out", "nnunet")
    assert np.array(Image.open(out / "imagesTr" / "a_0000.png")).shape == (8, 8, 3)
    assert len(json.loads((out / "dataset.json").read_text())["channel_names"]) == 3
