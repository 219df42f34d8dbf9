"""REFUGE with seven raters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import annotruth as at
from annotruth.io import check, import_source


def test_disc_and_cup_of_seven_raters(example_refuge: Path) -> None:
    loaded = at.load(example_refuge)
    assert loaded.items == ("0001", "0002")
    assert loaded.raters == tuple(f"rater_{number}" for number in range(1, 8))
    assert [int((loaded.masks[1, 6] == number).sum()) for number in range(3)] == [240, 64, 16]
    assert loaded.images.shape == (2, 3, 16, 20)


def test_a_rater_with_half_of_the_masks_is_left_out(example_refuge: Path) -> None:
    (example_refuge / "Training-400" / "0001" / "0001_seg_cup_3.png").unlink()
    loaded = at.load(example_refuge)
    assert np.flatnonzero(~loaded.labelled()[0]).tolist() == [loaded.raters.index("rater_3")]
    assert [problem.message for problem in check(example_refuge)] == [
        "the rater has no mask of the cup; the other is left out."
    ]


@pytest.fixture
def merged(tmp_path: Path) -> Path:
    """The folders of the challenge's archives."""
    home = tmp_path / "REFUGE"
    mask = np.full((16, 20), 255, dtype=np.uint8)
    mask[4:12, 5:15], mask[6:10, 8:12] = 128, 0
    masks, photographs = home / "Annotation-Training400" / "Disc_Cup_Masks", home / "Training400"
    for folder, name in (("Glaucoma", "g0001"), ("Non-Glaucoma", "n0001")):
        for parent in (masks, photographs, home / "Annotation-Training400" / "Illustration"):
            (parent / folder).mkdir(parents=True)
        Image.fromarray(mask).save(masks / folder / f"{name}.bmp")
        Image.new("RGB", (20, 16), (90, 60, 60)).save(photographs / folder / f"{name}.jpg")
        Image.new("RGB", (5, 5)).save(home / "Annotation-Training400" / "Illustration" / folder / f"{name}.jpg")
    return home


def test_the_challenges_own_masks_are_one_raters(merged: Path, tmp_path: Path) -> None:
    loaded = at.load(merged)
    assert (loaded.items, loaded.raters) == (("g0001", "n0001"), ("consensus",))
    assert [int((loaded.masks[1, 0] == number).sum()) for number in range(3)] == [240, 64, 16]
    assert loaded.images.shape == (2, 3, 16, 20)
    assert any("merged of seven" in note for note in import_source(merged, tmp_path / "cases").notes)


def test_masks_without_a_photograph_are_told(merged: Path) -> None:
    (merged / "Training400" / "Glaucoma" / "g0001.jpg").unlink()
    assert at.load(merged).items == ("n0001",)
    assert any("no photograph of 1 masks: g0001" in problem.message for problem in check(merged))


def test_raters_own_masks_come_first(merged: Path, example_refuge: Path, tmp_path: Path) -> None:
    merged.rename(example_refuge / "challenge")
    imported = import_source(example_refuge, tmp_path / "cases")
    assert len(imported.raters) == 7
    assert any("merged masks (Disc_Cup_Masks) are left out" in note for note in imported.notes)
