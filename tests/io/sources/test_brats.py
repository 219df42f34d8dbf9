"""BraTS: names of older and newer years, channels, labels."""

from __future__ import annotations

from pathlib import Path

import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.io import check, import_source


def test_channels_and_labels(example_brats: Path) -> None:
    loaded = at.load(example_brats)
    assert (loaded.raters, loaded.classes[3]) == (("consensus",), "enhancing tumour")
    assert loaded.images[1].mean(axis=(1, 2, 3)).tolist() == [0, 1, 2, 3]
    assert set(loaded.masks.reshape(-1).tolist()) == {0, 3}


def test_newer_names_and_several_raters(example_brats: Path) -> None:
    newer = {"_t1": "-t1n", "_t1ce": "-t1c", "_t2": "-t2w", "_flair": "-t2f", "_seg": "-seg"}
    for file in sorted(example_brats.rglob("*.nii.gz")):
        case, _, kind = file.name.removesuffix(".nii.gz").rpartition("_")
        content = file.read_bytes()
        if kind == "seg":
            (file.parent / f"{case}-seg_ann.nii.gz").write_bytes(content)
        file.rename(file.parent / f"{case}{newer['_' + kind]}.nii.gz")
    loaded = at.load(example_brats)
    assert sorted(loaded.raters) == ["ann", "consensus"]
    assert loaded.images.shape == (2, 4, 16, 20, 3)


def test_a_case_without_one_of_its_images_is_left_out(example_brats: Path) -> None:
    next(iter(sorted(example_brats.rglob("*_t2.nii.gz")))).unlink()
    assert any("lacks t2" in problem.message for problem in check(example_brats))


def test_uncertainty_maps_are_no_raters_labels(example_brats: Path, tmp_path: Path) -> None:
    first = next(iter(sorted(example_brats.rglob("*_seg.nii.gz"))))
    for what in ("whole", "core", "enhance"):
        copy = first.with_name(first.name.replace("_seg", f"_unc_{what}"))
        copy.write_bytes(first.read_bytes())
    imported = import_source(example_brats, tmp_path / "cases")
    assert imported.raters == {"consensus": 2}
    assert any("3 uncertainty maps (QU-BraTS) are left out" in note for note in imported.notes)
    for file in example_brats.rglob("*_seg.nii.gz"):
        file.unlink()
    with pytest.raises(InputError, match="3 uncertainty maps of a model"):
        at.load(example_brats)
