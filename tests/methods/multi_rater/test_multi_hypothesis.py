"""multi-hypothesis: the closest one learns most, and they part where raters do."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from annotruth import Annotations, Segmenter
from annotruth.errors import InputError
from annotruth.methods import make_method
from annotruth.methods.multi_rater.multi_hypothesis import mask_losses

pytestmark = pytest.mark.filterwarnings("ignore::annotruth.errors.AnnotruthWarning")


def test_the_closest_hypothesis_learns_most():
    logs = torch.tensor([[[0.9, 0.6], [0.1, 0.4]], [[0.2, 0.3], [0.8, 0.7]]]).log()[None]
    losses, given = mask_losses(logs, torch.tensor([[[0, 0], [1, 255]]], dtype=torch.uint8))
    expected = -np.log([[[0.9 * 0.6, 0.2 * 0.3], [0.1, 0.8]]])
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    assert given == 3


def test_hypotheses_take_different_ways_where_raters_do():
    """One draws everything, one nothing: hypotheses part, and their mean is even."""
    images = np.random.default_rng(0).normal(size=(24, 1, 8, 8)).astype(np.float32)
    masks = np.zeros((24, 2, 8, 8), dtype=np.uint8)
    masks[:, 0] = 1
    model = Segmenter("multi-hypothesis", hypotheses=2, max_epochs=12, validation=0, progress=False, batch_size=4)
    model.fit(Annotations.from_masks(masks, images=images))
    drawn = model.sample(images[:4], n=2).mean(axis=(2, 3))
    assert (abs(drawn[0] - drawn[1]) > 0.9).all()
    np.testing.assert_allclose(model.predict_proba(images[:4]), 0.5, atol=0.2)


@pytest.mark.parametrize(
    ("options", "words"), [({"hypotheses": 1}, "at least 2"), ({"relaxation": 1.0}, "relaxation is a share")]
)
def test_wrong_options_of_hypotheses(options, words):
    with pytest.raises(InputError, match=words):
        make_method("multi-hypothesis", "masks", options)
