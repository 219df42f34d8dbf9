"""correlated-cm: a drawing's mood is learnt, so that drawings as a whole are foretold; options."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from annotruth import Annotations, Segmenter
from annotruth.errors import InputError
from annotruth.methods import Batch, make_method
from annotruth.metrics import dice

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")


def strips(items: int, seed: int) -> Annotations:
    """Noisy bars, that one rater draws, and another draws wider at all of their edges or at none."""
    rng = np.random.default_rng(seed)
    masks = np.zeros((items, 2, 12, 12), dtype=np.uint8)
    masks[:, :, 4:8] = 1
    for wide in masks[::2, 1]:
        wide[2:10] = 1
    images = masks[:, :1] + rng.normal(0, 0.2, (items, 1, 12, 12))
    return Annotations.from_masks(masks, images.astype(np.float32), raters=["steady", "moody"])


def test_drawings_are_foretold_as_a_whole():
    """Of pixels alone, those that depend on the mood cost log 2 each; of a drawing, all of them cost that once."""
    new, cost, samples = strips(8, seed=1), {}, {}
    for name in ("pixel-cm", "correlated-cm"):
        model = Segmenter(name, max_epochs=14, batch_size=4, validation=0, learning_rate=0.01, progress=False)
        model.fit(strips(24, seed=0))
        assert dice(model.predict(new.images), new.masks[:, 0]) > 0.95
        with torch.no_grad():
            images = torch.stack([model._standardised(image, "") for image in new.images])
            batch = Batch(images, torch.from_numpy(new.masks))
            cost[name] = float(model.method_.loss(model.module_, batch, 1.0)[1])
        samples[name] = model.sample(new.images, 12)
    assert cost["pixel-cm"] > 0.9 * np.log(2) / 6  # a third of one rater's pixels
    assert cost["correlated-cm"] < cost["pixel-cm"] / 2
    wide = samples["correlated-cm"][:, :, [2, 3, 8, 9]].mean(axis=(2, 3))
    assert 0.05 < (wide > 0.9).mean() < 0.5  # somebody draws so at times
    assert ((wide > 0.9) | (wide < 0.1)).mean() > 0.7  # and mostly at all edges or at none


@pytest.mark.parametrize(
    ("options", "words"),
    [({"rank": 0}, "rank must be at least 1, not 0"), ({"samples": 0}, "samples must be at least 1, not 0")],
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        make_method("correlated-cm", "masks", options)
