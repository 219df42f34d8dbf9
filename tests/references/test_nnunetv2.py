"""nnU-Net itself: it finds nothing wrong with our data sets, reads the same labels, and we read those it writes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

import annotruth as at
from annotruth.fusion.folder import fuse
from annotruth.io.exports import export_result

Program = Callable[[str], ModuleType]


@pytest.fixture
def nnunet(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Import one of its modules, with its folders set."""
    for name in ("raw", "preprocessed", "results"):
        monkeypatch.setenv(f"nnUNet_{name}", str(tmp_path / name))
    return lambda name: program(f"nnunetv2.{name}")


def test_it_finds_nothing_wrong(
    nnunet: Program, known: Path, known_volumes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checks = nnunet("experiment_planning.verify_dataset_integrity")
    partly = np.array(Image.open(known / "truth" / "b.png"))
    partly[:3] = 255  # not labelled, which nnU-Net shall ignore
    Image.fromarray(partly).save(known / "truth" / "b.png")
    for name, result in (("Dataset001_Planes", known), ("Dataset002_Volumes", known_volumes)):
        out = export_result(result, tmp_path / "raw" / name, "nnunet")
        checks.verify_dataset_integrity(str(out), num_processes=1)
        assert "verify_dataset_integrity Done" in capsys.readouterr().out


def test_it_reads_the_labels_we_write(
    nnunet: Program, known: Path, known_volumes: Path, planes: dict[str, np.ndarray], volume: np.ndarray, tmp_path: Path
) -> None:
    out = export_result(known, tmp_path / "raw" / "Dataset001_Planes", "nnunet")
    reader = nnunet("imageio.natural_image_reader_writer").NaturalImage2DIO()
    for name, labels in planes.items():
        np.testing.assert_array_equal(reader.read_seg(str(out / "labelsTr" / f"{name}.png"))[0][0, 0], labels)
    out = export_result(known_volumes, tmp_path / "raw" / "Dataset002_Volumes", "nnunet")
    for module, name in (("nibabel", "NibabelIO"), ("simpleitk", "SimpleITKIO")):
        reader = getattr(nnunet(f"imageio.{module}_reader_writer"), name)()
        seen, about = reader.read_seg(str(out / "labelsTr" / "P7.nii.gz"))
        np.testing.assert_array_equal(seen[0].transpose(2, 1, 0), volume)
        assert list(about["spacing"]) == [3, 2, 1.5]


def test_it_reads_our_soft_labels(nnunet: Program, known: Path, planes: dict[str, np.ndarray], tmp_path: Path) -> None:
    for rater in ("ann", "bob"):
        shutil.copytree(known / "truth", known / "raters" / rater)
    Image.fromarray(np.zeros_like(planes["a"])).save(known / "raters" / "bob" / "a.png")
    fuse(known, tmp_path / "fused", "mean")
    out = export_result(tmp_path / "fused", tmp_path / "raw" / "Dataset001_Planes", "nnunet", cases=known)
    average = nnunet("ensembling.ensemble").average_probabilities
    seen = average([str(out / "softlabelsTr" / "a.npz")])
    expected = np.stack([((planes["a"] == number) + float(number == 0)) / 2 for number in range(3)])
    np.testing.assert_allclose(seen[:, 0], expected, atol=1e-6)


def test_we_read_the_labels_it_writes(
    nnunet: Program, known_volumes: Path, volume: np.ndarray, planes: dict[str, np.ndarray], tmp_path: Path
) -> None:
    describe = nnunet("dataset_conversion.generate_dataset_json").generate_dataset_json
    volumes, pictures = tmp_path / "raw" / "Dataset003_Theirs", tmp_path / "raw" / "Dataset004_Theirs"
    for folder in (volumes, pictures):
        (folder / "imagesTr").mkdir(parents=True)
        (folder / "labelsTr").mkdir()
    labels = {"background": 0, "cell": 1, "wall": 2}
    writer = nnunet("imageio.nibabel_reader_writer").NibabelIO()
    image = known_volumes / "images" / "P7.nii.gz"
    (volumes / "imagesTr" / "P7_0000.nii.gz").write_bytes(image.read_bytes())
    _, about = writer.read_images([str(image)])
    writer.write_seg(volume.transpose(2, 1, 0), str(volumes / "labelsTr" / "P7.nii.gz"), about)
    describe(str(volumes), {0: "CT"}, labels, 1, ".nii.gz")
    found = at.load(volumes)
    assert (found.items, found.classes) == (("P7",), ("background", "cell", "wall"))
    np.testing.assert_array_equal(found.item_masks(0)[0], volume)
    writer = nnunet("imageio.natural_image_reader_writer").NaturalImage2DIO()
    for name, plane in planes.items():
        Image.fromarray(np.full(plane.shape, 9, dtype=np.uint8)).save(pictures / "imagesTr" / f"{name}_0000.png")
        writer.write_seg(plane[None], str(pictures / "labelsTr" / f"{name}.png"), {})
    describe(str(pictures), {0: "photo"}, labels, 2, ".png")
    found = at.load(pictures)
    for number, plane in enumerate(planes.values()):
        np.testing.assert_array_equal(found.item_masks(number)[0], plane)
