"""madl on label tables, by loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import softmax
from scipy.stats import gamma

from annotruth.methods import Batch


def test_labels_are_weighed_by_how_alone_their_rater_is(build_shaken, given, batch):
    method, model = build_shaken("madl")
    raters = model.annotators
    truth = softmax(model.truth(batch.images).detach().numpy(), axis=-1)
    matrices = raters(batch.images).dense().detach().numpy()
    vectors, sharpness = raters.raters.detach().numpy(), max(raters.sharpness.item(), 1e-3)
    alone = []
    for one in vectors:
        cosines = [one @ other / np.linalg.norm(one) / np.linalg.norm(other) for other in vectors]
        alone.append(1 / sum(np.exp(sharpness * (cosine - 1)) for cosine in cosines))
    weights = np.array(alone) / np.mean(alone)
    said = [(r, np.log(truth[i] @ matrices[i, r][:, label])) for i, r, label in given]
    loss, likelihood = method.loss(model, batch, 0.5)
    assert likelihood.item() == pytest.approx(-np.mean([each for _, each in said]))
    expected = -np.mean([weights[r] * each for r, each in said]) - gamma(1.25, scale=4).logpdf(sharpness)
    assert loss.item() == pytest.approx(expected, rel=1e-5)


def test_copies_of_a_rater_share_a_weight(build):
    _, model = build("madl")
    with torch.no_grad():
        model.annotators.sharpness.fill_(20.0)
        model.annotators.raters.copy_(torch.eye(4, 16))
        model.annotators.raters[1:3] = model.annotators.raters[0]
    weights = model.annotators.weights()
    torch.testing.assert_close(weights[:3].sum(), weights[3], rtol=1e-4, atol=0)


def test_a_batch_may_list_some_raters(build_shaken, batch):
    method, model = build_shaken("madl")
    some, others = torch.tensor([3, 1]), batch.labels.clone()
    others[:, [0, 2]] = -1
    listed = method.loss(model, Batch(batch.images, batch.labels[:, some], raters=some), 0.5)
    torch.testing.assert_close(listed, method.loss(model, Batch(batch.images, others), 0.5))
