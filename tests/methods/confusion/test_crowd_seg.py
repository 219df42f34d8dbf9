"""crowd-seg: matrices follow the image, which one matrix per rater cannot."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth import Annotations, Segmenter
from annotruth.errors import InputError
from annotruth.methods import DataSpec, make_method
from annotruth.metrics import dice


def bars(items: int, seed: int) -> Annotations:
    """Dark and bright pictures of a bar, drawn by two good raters, and by one who sees nothing in dark ones."""
    rng = np.random.default_rng(seed)
    masks = np.zeros((items, 3, 12, 12), dtype=np.uint8)
    for mask in masks:
        top = rng.integers(2, 6)
        mask[:, top : top + 4] = 1
    images = masks[:, :1] + rng.normal(0, 0.2, (items, 1, 12, 12))
    images[::2] += 2.0
    masks[1::2, 2] = 0
    return Annotations.from_masks(masks, images.astype(np.float32), raters=["a", "b", "half"])


@pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")
def test_a_rater_who_misses_dark_pictures_is_known_to():
    model = Segmenter("crowd-seg", max_epochs=20, batch_size=4, validation=0, learning_rate=0.01, progress=False)
    model.fit(bars(24, seed=0))
    new = bars(8, seed=1)
    assert dice(model.predict(new.images), new.masks[:, 0]) > 0.9
    seen = model.confusion(new.images)[:, 2, 1, 1]  # how often the third rater sees the bar, picture by picture
    assert seen[::2].min() > seen[1::2].max() + 0.2


def test_raters_cost_a_vector_each():
    sizes = {}
    for raters in (2, 12):
        model = make_method("crowd-seg", "masks").build(DataSpec(channels=1, raters=raters, classes=2, dims=2))
        sizes[raters] = sum(weights.numel() for weights in model.annotators.parameters())
    assert sizes[12] - sizes[2] == 10 * 16


def test_a_warmup_that_is_no_share_is_refused():
    with pytest.raises(InputError, match="warmup is a share of the training"):
        make_method("crowd-seg", "masks", {"warmup": 1.0})
