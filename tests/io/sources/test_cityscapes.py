"""Cityscapes: fine and coarse, label images and polygons."""

from __future__ import annotations

from pathlib import Path

import annotruth as at
from annotruth.io import import_source


def test_fine_and_coarse(example_cityscapes: Path, tmp_path: Path) -> None:
    import_source(example_cityscapes, tmp_path / "cases")
    loaded = at.load(tmp_path / "cases")
    assert (loaded.groups, set(loaded.raters)) == (("aachen", "ulm"), {"fine", "coarse"})
    fine, coarse = (loaded.masks[0, loaded.raters.index(rater)] for rater in ("fine", "coarse"))
    road, car = loaded.classes.index("road"), loaded.classes.index("car")
    assert ((fine == car).sum(), (fine == road).sum()) == (80, 240)
    assert ((coarse == car).sum(), (coarse == road).sum(), (coarse == 255).sum()) == (20, 120, 180)


def test_annotations_without_images(example_cityscapes: Path) -> None:
    for file in example_cityscapes.rglob("*_leftImg8bit.png"):
        file.unlink()
    loaded = at.load(example_cityscapes)
    assert not loaded.has_images
    assert loaded.masks.shape == (2, 2, 16, 20)
