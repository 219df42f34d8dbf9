"""Volumes from end to end: NIfTI files, four simulated raters, training by patches, prediction by sliding windows."""

from __future__ import annotations

from pathlib import Path

import nibabel
import numpy as np
import pytest

from annotruth import load_model

SIZES = [(14, 11, 9), (12, 13, 10), (9, 12, 12), (13, 10, 11)]
RATERS = ("good", "over", "under", "wrong")


def tilted(number: int) -> np.ndarray:
    """Where a volume lies in space: voxels that are no cubes, axes that are not the scanner's."""
    angle = 0.2 + number / 10
    turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
    affine = np.eye(4)
    affine[:3, :3] = turn @ np.diag([-1.0, 0.5, 2.0])
    affine[:3, 3] = 10 * number, -3, 7
    return affine


@pytest.fixture(scope="module")
def volumes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images and truth: two structures, one within the other, in volumes of different sizes."""
    folder, rng = tmp_path_factory.mktemp("volumes"), np.random.default_rng(0)
    for kind in ("images", "truth"):
        (folder / kind).mkdir()
    for number, size in enumerate(SIZES):
        truth = np.zeros(size, np.uint8)
        truth[2:-3, 2:-2, 2:-2] = 1
        truth[4:-4, 4:-4, 3:-3] = 2
        image = (truth * 100 + rng.normal(0, 20, size)).astype(np.int16)
        for kind, array in (("images", image), ("truth", truth)):
            file = nibabel.Nifti1Image(array, tilted(number))
            file.header.set_xyzt_units("mm")
            nibabel.save(file, folder / kind / f"case_{number}.nii.gz")
    return folder


def test_volumes_from_end_to_end(annotruth, volumes, tmp_path):
    cases, run, out = tmp_path / "cases", tmp_path / "run", tmp_path / "out"
    assert annotruth("simulate", volumes, "-o", cases, "--raters", ",".join(RATERS)).code == 0
    ended = annotruth(
        "train", cases, "-o", run, "--method", "pixel-cm", "--patch-size", "8,8,8", "--epochs", 2, "--batch-size", 2,
        "--validation", 0, "--augment", "--accelerator", "cpu", "-q",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    assert annotruth("predict", run, volumes / "images", "-o", out, "-q").code == 0
    for number, size in enumerate(SIZES):
        image = nibabel.load(volumes / "images" / f"case_{number}.nii.gz")
        for kind, axes in (("labels", 3), ("probabilities", 4)):
            written = nibabel.load(out / kind / f"case_{number}.nii.gz")
            np.testing.assert_allclose(written.affine, image.affine, atol=1e-6)
            assert written.shape == (*size, 3)[:axes]
        labels = np.asarray(nibabel.load(out / "labels" / f"case_{number}.nii.gz").dataobj)
        probabilities = np.asarray(nibabel.load(out / "probabilities" / f"case_{number}.nii.gz").dataobj)
        np.testing.assert_allclose(probabilities.sum(axis=-1), 1, atol=1e-4)
        assert (np.take_along_axis(probabilities, labels[..., None], -1)[..., 0] >= probabilities.max(-1) - 1e-6).all()
    model = load_model(run / "model.annotruth")
    assert model.dims_ == 3
    assert list(model.annotators_) == sorted(RATERS)
    assert all(np.allclose(each.confusion.sum(axis=1), 1) for each in model.annotators_.values())
    matrices = model.annotators_["wrong"].confusion_map(np.zeros((1, 14, 11, 9), np.float32))
    assert matrices.shape == (3, 3, 14, 11, 9)


@pytest.mark.parametrize(
    ("size", "words"), [("8,8", "each of the 3 axes"), ("8,x,8", "as 64,64,32"), ("8,0,8", "positive")]
)
def test_wrong_patch_sizes(annotruth, volumes, tmp_path, size, words):
    annotruth("simulate", volumes, "-o", tmp_path / "cases", "--raters", "good,over")
    ended = annotruth("train", tmp_path / "cases", "-o", tmp_path / "run", "--patch-size", size, "-q")
    assert ended.code == 2
    assert words in ended.err.replace("\n", " ")
    assert not (tmp_path / "run").exists()
