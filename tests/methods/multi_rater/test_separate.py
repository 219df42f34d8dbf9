"""separate: a network per rater, and their mean."""

from __future__ import annotations

import warnings

import torch

from annotruth import Segmenter
from annotruth.errors import IdentifiabilityWarning
from annotruth.methods import Batch, DataSpec, make_method


def test_separate_networks_learn_from_their_own_rater_and_are_averaged():
    spec = DataSpec(channels=1, raters=2, classes=2, dims=2)
    method = make_method("separate", "masks")
    model = method.build(spec).eval()
    images = torch.rand(2, 1, 8, 8)
    by_hand = torch.stack([network(images).softmax(dim=1) for network in model.truth]).mean(dim=0)
    torch.testing.assert_close(model.log_truth(images).exp(), by_hand)

    labels = torch.ones(2, 2, 8, 8, dtype=torch.uint8)
    labels[:, 1] = 255  # the second rater labelled nothing, so the second network has nothing to learn
    loss, _ = method.loss(model, Batch(images, labels), progress=0.0)
    loss.backward()
    first, second = ([p.grad for p in network.parameters()] for network in model.truth)
    assert any(grad is not None and grad.abs().sum() > 0 for grad in first)
    assert all(grad is None or grad.abs().sum() == 0 for grad in second)


def test_separate_copies_a_given_network():
    network = torch.nn.Conv2d(1, 2, 1)
    model = make_method("separate", "masks").build(DataSpec(1, 3, 2, 2), network)
    assert len({id(each) for each in model.truth}) == 3


def test_separate_trains_copies_of_a_given_network(digits):
    network = torch.nn.Conv2d(1, 2, 3, padding=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifiabilityWarning)  # after one epoch the estimate is as poor as can be
        model = Segmenter(method="separate", network=network, max_epochs=1, progress=False).fit(digits)
    assert model.predict(digits.images).shape == (3, 28, 28)
