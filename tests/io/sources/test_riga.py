"""RIGA and REFUGE's optic nerve heads: lines on photographs, and masks of disc and cup."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import annotruth as at
from annotruth.errors import InputError


def test_lines_are_found_and_filled(example_riga: Path) -> None:
    loaded = at.load(example_riga)
    assert (loaded.items, loaded.classes) == (("image1", "image2"), ("background", "disc", "cup"))
    rows, columns = np.mgrid[:80, :90]
    distance = np.hypot(rows - 40, columns - 45)
    for rater in range(3):
        mask = loaded.masks[0, rater]
        for number, radius in ((1, 30), (2, 13 + rater)):
            drawn, meant = mask >= number, distance <= radius
            assert (drawn & meant).sum() * 2 / (drawn.sum() + meant.sum()) > 0.97
    assert loaded.images.shape == (2, 3, 80, 90)


def test_a_photograph_without_lines_and_lines_without_a_photograph_are_named(example_riga: Path) -> None:
    plain = example_riga / "BinRushed" / "image1prime.tif"
    (example_riga / "BinRushed" / "image1-2.tif").write_bytes(plain.read_bytes())
    (example_riga / "BinRushed" / "image9-1.tif").write_bytes(plain.read_bytes())
    messages = [str(problem) for problem in at.io.check(example_riga)]
    assert any("image9-1.tif (rater rater_1): there is a drawing, but no photograph" in text for text in messages)
    assert any("image1-2.tif (case image1, rater rater_2): no line is drawn" in text for text in messages)
    with pytest.raises(InputError, match="no photograph"):
        at.load(example_riga)


def test_copies_as_jpeg(example_riga: Path) -> None:
    before = at.load(example_riga).masks
    for file in sorted(example_riga.rglob("*.tif")):
        Image.open(file).save(file.with_suffix(".jpg"), quality=95)
        file.unlink()
    after = at.load(example_riga).masks
    assert (before == after).mean() > 0.97
