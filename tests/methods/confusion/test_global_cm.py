"""One matrix per rater, learnt together with the network."""

from __future__ import annotations

import pytest
import torch

from annotruth.errors import InputError
from annotruth.methods import Batch, DataSpec, make_method
from annotruth.methods.anchor import Anchored
from annotruth.methods.warmup import CONSENSUS_SHARE, WarmUp

SPEC = DataSpec(channels=1, raters=3, classes=2, dims=2)


def test_every_pixel_has_the_same_matrix_and_confusion_needs_no_look_at_the_image():
    method = make_method("global-cm", "masks")
    model = method.build(SPEC)
    one, other = (method.confusion(model, torch.rand(2, 1, side, side)).dense() for side in (8, 12))
    torch.testing.assert_close(one, other)
    assert one.shape[-3:] == (3, 2, 2)


def test_the_warm_up_is_chosen_by_its_option():
    assert isinstance(make_method("global-cm", "masks").stages, Anchored)
    consensus = make_method("global-cm", "masks", {"warmup": 0.2}).stages
    assert isinstance(consensus, WarmUp)
    assert consensus.share == 0.2
    by_features = make_method("global-cm", "masks", {"rater_features": "years"}).stages
    assert isinstance(by_features, WarmUp)
    assert by_features.share == CONSENSUS_SHARE
    with pytest.raises(InputError, match="Unknown warmup 'trace'"):
        make_method("global-cm", "masks", {"warmup": "trace"})


def test_matrices_learn_once_somebody_was_chosen_and_drawings_no_more():
    method = make_method("global-cm", "masks")
    model = method.build(SPEC)
    images = torch.rand(2, 1, 16, 16)
    batch = Batch(images, (images > torch.tensor([0.3, 0.5, 0.7]).view(3, 1, 1)).to(torch.uint8))
    model.anchor.fill_(1)
    method.loss(model, batch, 0.9)[0].backward()
    assert model.annotators.errors.scores.grad is not None
    assert model.annotators.drawings.weight.grad is None
    assert method.keeps_last_weights
    assert not make_method("global-cm", "masks", {"warmup": 0.4}).keeps_last_weights
