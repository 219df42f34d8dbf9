"""ACDC: scribbles with masks as the truth, and masks alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import annotruth as at
from annotruth.io import import_source


def test_scribbles_and_truth(example_acdc: Path, tmp_path: Path) -> None:
    import_source(example_acdc, tmp_path / "cases")
    loaded = at.load(tmp_path / "cases")
    assert loaded.groups == ("patient001", "patient001", "patient002")
    assert loaded.raters == ("scribbles",)
    strokes = loaded.masks[0, 0]
    assert ((strokes == 255).sum(), (strokes == 3).sum(), (strokes == 0).sum()) == (16 * 60 - 60 - 24, 24, 60)
    assert set(np.unique(loaded.truth[0]).tolist()) == {0, 3}


def test_without_scribbles_masks_are_the_experts(example_acdc: Path) -> None:
    for file in example_acdc.rglob("*_scribble.nii.gz"):
        file.unlink()
    loaded = at.load(example_acdc)
    assert loaded.raters == ("expert",)
    assert not loaded.has_truth
