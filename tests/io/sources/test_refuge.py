"""REFUGE with seven raters."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import annotruth as at
from annotruth.io import check


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
