"""Volumes from end to end: NIfTI files, four simulated raters, training by patches, prediction by sliding windows."""

from __future__ import annotations

import gzip
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


def write_volumes(folder: Path, spacings: list[tuple[float, float, float]]) -> Path:
    """A ball of 8 mm in a volume of 16 mm, whatever the voxels are: images, truth and two raters."""
    rng = np.random.default_rng(0)
    for kind in ("images", "truth", "raters/a", "raters/b"):
        (folder / kind).mkdir(parents=True)
    for number, spacing in enumerate(spacings):
        places = [(np.arange(round(16 / step)) + 0.5) * step - 8 for step in spacing]
        ball = sum(place**2 for place in np.meshgrid(*places, indexing="ij")) < 16
        image = (100 * ball + rng.normal(0, 10, ball.shape)).astype(np.int16)
        for kind in ("images", "truth", "raters/a", "raters/b"):
            array = image if kind == "images" else ball.astype(np.uint8)
            nibabel.save(nibabel.Nifti1Image(array, np.diag([*spacing, 1.0])), folder / kind / f"case_{number}.nii.gz")
    return folder


def test_volumes_of_different_spacing_from_end_to_end(annotruth, tmp_path):
    """Trained at the median spacing; predictions and the report lie on the files' own grids."""
    apart = [(1.0, 1.0, 1.0), (1.0, 1.0, 2.0), (2.0, 1.0, 1.0), (1.0, 1.0, 1.0)]
    cases, run, out = write_volumes(tmp_path / "cases", apart), tmp_path / "run", tmp_path / "out"
    options = ("--method", "pixel-cm", "--epochs", 12, "--batch-size", 2, "--validation", 0, "--no-augment", "-q")
    ended = annotruth("train", cases, "-o", run, "--accelerator", "cpu", *options)
    assert ended.code == 0, ended.err
    model = load_model(run / "model.annotruth")
    assert model.plan_.spacing == (1.0, 1.0, 1.0)
    assert not model.augment
    assert annotruth("predict", run, cases / "images", "-o", out, "-q").code == 0
    for number in range(4):
        truth = nibabel.load(cases / "truth" / f"case_{number}.nii.gz")
        labels = nibabel.load(out / "labels" / f"case_{number}.nii.gz")
        np.testing.assert_allclose(labels.affine, truth.affine)
        assert labels.shape == truth.shape
        found, there = np.asarray(labels.dataobj) > 0, np.asarray(truth.dataobj) > 0
        assert 2 * (found & there).sum() / (found.sum() + there.sum()) > 0.8
    ended = annotruth("report", run)
    assert ended.code == 0, ended.err


def test_a_volume_of_no_spacing_among_others_is_named(annotruth, tmp_path):
    cases = write_volumes(tmp_path / "cases", [(1.0, 1.0, 1.0), (1.0, 1.0, 2.0), (1.0, 1.0, 1.0)])
    for path in cases.rglob("case_2.nii.gz"):
        content = gzip.decompress(path.read_bytes())
        head = nibabel.Nifti1Header(content[:348])
        head["srow_z"], head["pixdim"][3] = 0, 0
        path.write_bytes(gzip.compress(head.binaryblock + content[348:]))
    ended = annotruth("train", cases, "-o", tmp_path / "run", "--epochs", 1, "-q")
    assert ended.code == 2
    assert "No spacing, or one of zero, is known of case_2" in ended.err.replace("\n", " ")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("size", "words"), [("8,8", "each of the 3 axes"), ("8,x,8", "as 64,64,32"), ("8,0,8", "positive")]
)
def test_wrong_patch_sizes(annotruth, volumes, tmp_path, size, words):
    annotruth("simulate", volumes, "-o", tmp_path / "cases", "--raters", "good,over")
    ended = annotruth("train", tmp_path / "cases", "-o", tmp_path / "run", "--patch-size", size, "-q")
    assert ended.code == 2
    assert words in ended.err.replace("\n", " ")
    assert not (tmp_path / "run").exists()
