"""QUBIQ: one task or several, raters that lack one, one data set at a time."""

from __future__ import annotations

from pathlib import Path

import nibabel
import numpy as np
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.io import check, import_source


def put(path: Path, voxels: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(voxels.astype(np.float32), np.eye(4)), path)


def test_cases_raters_and_images(example_qubiq: Path, tmp_path: Path) -> None:
    imported = import_source(example_qubiq, tmp_path / "cases")
    assert (imported.items, imported.classes) == (2, ("background", "kidney"))
    assert imported.raters == {"rater_1": 2, "rater_2": 2, "rater_3": 2}
    cases, direct = at.load(tmp_path / "cases"), at.load(example_qubiq)
    assert cases.items == ("case01", "case02")
    np.testing.assert_array_equal(cases.masks, direct.masks)
    assert cases.masks.shape == (2, 3, 16, 20)
    assert cases.masks.sum() == 2 * 3 * 80
    assert check(example_qubiq) == []


def test_several_tasks_are_classes_with_the_smaller_on_top(tmp_path: Path) -> None:
    large, small = np.zeros((8, 8)), np.zeros((8, 8))
    large[1:7, 1:7], small[3:5, 3:5] = 1, 1
    for rater in (1, 2):
        put(tmp_path / "q" / "case01" / f"task01_seg0{rater}.nii.gz", small)
        put(tmp_path / "q" / "case01" / f"task02_seg0{rater}.nii.gz", large)
    put(tmp_path / "q" / "case01" / "image.nii.gz", np.ones((8, 8, 4)))  # four modalities
    loaded = at.load(tmp_path / "q")
    assert loaded.classes == ("background", "task02", "task01")
    np.testing.assert_array_equal(loaded.masks[0, 0], large + small)
    assert loaded.images.shape == (1, 4, 8, 8)
    np.testing.assert_array_equal(at.load(tmp_path / "q", task=1).masks[0, 1], small)
    with pytest.raises(InputError, match="no task 3, only 1, 2"):
        at.load(tmp_path / "q", task=3)
    (tmp_path / "q" / "case01" / "task02_seg02.nii.gz").unlink()
    assert at.load(tmp_path / "q").raters == ("rater_1",)
    assert any("no mask of task02" in problem.message for problem in check(tmp_path / "q"))


def test_volumes(tmp_path: Path) -> None:
    for rater in (1, 2):
        put(tmp_path / "pancreas" / "case1-1" / f"task01_seg0{rater}.nii.gz", np.ones((4, 5, 6)))
    put(tmp_path / "pancreas" / "case1-1" / "image.nii.gz", np.ones((4, 5, 6)))
    assert at.load(tmp_path / "pancreas").masks.shape == (1, 2, 4, 5, 6)


@pytest.mark.parametrize(
    ("data_set", "tasks", "raters", "size", "modalities"),
    [
        ("brain-growth", 1, 7, (8, 9), 1),
        ("brain-tumor", 3, 3, (8, 9), 4),
        ("kidney", 1, 3, (8, 9), 1),
        ("prostate", 2, 6, (8, 9), 1),
        ("pancreas", 1, 2, (5, 6, 4), 1),
        ("pancreatic-lesion", 1, 2, (5, 6, 4), 1),
    ],
)
def test_all_data_sets_with_their_tasks_and_raters(
    data_set: str, tasks: int, raters: int, size: tuple[int, ...], modalities: int, tmp_path: Path
) -> None:
    for case in ("case01", "case02"):
        home = tmp_path / data_set / "Training" / case
        put(home / "image.nii.gz", np.ones(size if modalities == 1 else (*size, modalities)))
        for task in range(1, tasks + 1):
            for rater in range(1, raters + 1):
                mask = np.zeros(size)
                mask[1 : 5 - task, 1:3] = 1  # the later a task, the smaller
                put(home / f"task{task:02d}_seg{rater:02d}.nii.gz", mask)
    loaded = at.load(tmp_path / data_set)
    assert loaded.raters == tuple(f"rater_{number}" for number in range(1, raters + 1))
    names = (data_set,) if tasks == 1 else tuple(f"task{number:02d}" for number in range(1, tasks + 1))
    assert loaded.classes == ("background", *names)
    assert loaded.images.shape == (2, modalities, *size)
    assert loaded.masks.max() == tasks
    for task in range(1, tasks + 1):
        alone = at.load(tmp_path / data_set, task=task)
        assert alone.masks[0, 0].sum() == (4 - task) * 2 * np.prod(size[2:])


def test_two_data_sets_at_once_are_refused(example_qubiq: Path) -> None:
    put(example_qubiq.parent / "prostate" / "Training" / "case01" / "task01_seg01.nii.gz", np.ones((4, 4)))
    with pytest.raises(InputError, match="several data sets of QUBIQ: kidney, prostate"):
        at.load(example_qubiq.parent, source="qubiq")
