"""Fused results of a small import, to be sent back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest

from annotruth.fusion.folder import fuse
from annotruth.io import import_source


@pytest.fixture
def drawn(tmp_path: Path, put: Any) -> Path:
    """Three raters' drawings in Labelme's form: cells, and a wall in the second image."""
    for number, rater in enumerate(("ann", "bob", "cy")):
        for case in ("a", "b"):
            cell = {"label": "cell", "points": [[2, 2], [6 + number, 2], [6 + number, 5], [2, 5]]}
            wall = {"label": "wall", "points": [[0, 6], [9, 6], [9, 8], [0, 8]]}
            shapes = [cell] + [wall] * (case == "b")
            content = {"shapes": shapes, "imagePath": f"in/{case}.png", "imageHeight": 8, "imageWidth": 9}
            (tmp_path / "drawn" / rater).mkdir(parents=True, exist_ok=True)
            (tmp_path / "drawn" / rater / f"{case}.json").write_text(json.dumps(content))
            put(tmp_path / "drawn" / "in" / f"{case}.png", np.full((8, 9), 50, dtype=np.uint8))
    return tmp_path / "drawn"


@pytest.fixture
def fused(drawn: Path, tmp_path: Path) -> Path:
    import_source(drawn, tmp_path / "cases")
    fuse(tmp_path / "cases", tmp_path / "fused", "mean")
    return tmp_path / "fused"


@pytest.fixture
def fused_answers(tmp_path: Path) -> Path:
    rows = ["item,rater,label", *(f"{item},{rater},{item}" for item in ("cat", "dog") for rater in "xyz"), "cat,w,dog"]
    (tmp_path / "answers.csv").write_text("\n".join(rows))
    fuse(tmp_path / "answers.csv", tmp_path / "fused_answers", "mean")
    return tmp_path / "fused_answers"


@pytest.fixture
def fused_volumes(tmp_path: Path) -> Path:
    """One volume, in millimetres that are not those of its voxels."""
    affine = np.array([[-1.5, 0, 0, -5], [0, -2, 0, -6], [0, 0, 3, 7], [0, 0, 0, 1]], dtype=float)
    for number, rater in enumerate(("ann", "bob", "cy")):
        mask = np.zeros((10, 8, 4), dtype=np.uint8)
        mask[3 : 7 + number, 2:5, 1] = 1
        mask[1:3, 5:7, 2] = 2
        (tmp_path / "volumes" / "raters" / rater).mkdir(parents=True)
        nibabel.save(nibabel.Nifti1Image(mask, affine), tmp_path / "volumes" / "raters" / rater / "P 7.nii.gz")
    (tmp_path / "volumes" / "dataset.json").write_text(json.dumps({"classes": ["background", "liver", "vein"]}))
    fuse(tmp_path / "volumes", tmp_path / "fused_volumes", "mean")
    return tmp_path / "fused_volumes"
