"""The report on coarse drawings: strokes over images."""

from __future__ import annotations

import io
from base64 import b64decode

import numpy as np
import pytest
from PIL import Image

from annotruth import Annotations, Segmenter, report
from annotruth.reporting import tiles
from annotruth.simulate import noisy_digits, simulate_drawings


def _pixels(uri):
    return np.asarray(Image.open(io.BytesIO(b64decode(uri.split(",")[1]))).convert("RGBA"))


def test_strokes_of_both_kinds_are_told_apart():
    positive, negative = np.full((2, 8, 8), 255, dtype=np.uint8)
    positive[0], positive[2], negative[6] = 1, 0, 1
    layer = _pixels(tiles.strokes(positive, negative, ["#ff0000"]))
    row = layer.shape[0] // 8
    assert (layer[0, :, :3] == (255, 0, 0)).all()
    assert (layer[2 * row, :, 0] == layer[2 * row, :, 1]).all()  # background strokes are grey
    assert (layer[4 * row, :, 3] == 0).all()
    striped = layer[6 * row, :, 3] > 0
    assert 0.3 < striped.mean() < 0.7
    assert (_pixels(tiles.strokes(positive, None, ["#ff0000"]))[6 * row, :, 3] == 0).all()


@pytest.fixture(scope="module")
def drawn():
    images, truth, _ = noisy_digits(12, ink=127)
    simulation = simulate_drawings(truth, positive=0.5, negative=0.3, strength=0, raters=["ann", "bob"])
    masks = simulation.masks.copy()
    masks[:, 1] = 255  # bob draws only what is not there
    return Annotations.from_masks(
        masks, images=images, negatives=simulation.negatives, raters=["ann", "bob"], classes=["background", "digit"]
    )


def test_the_page_shows_drawings(drawn, tmp_path):
    model = Segmenter("coarse-cm", max_epochs=1, progress=False).fit(drawn)
    page = report(model, drawn, tmp_path / "report.html", max_cases=2).read_text()
    assert "What bob drew on" in page
    assert "striped: not this class" in page
    assert "marked" in page
