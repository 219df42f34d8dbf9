"""crowd-layer on label tables, by loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import softmax

from annotruth.methods import DataSpec, make_method

RATERS, CLASSES = 4, 3


def test_crowd_layer_is_a_softmax_of_a_linear_map_of_probabilities(build_shaken, given, batch):
    method, model = build_shaken("crowd-layer")
    truth = softmax(model.truth(batch.images).detach().numpy(), axis=-1)
    maps = model.annotators.maps.detach().numpy()
    by_loops = -np.mean([np.log(softmax(truth[i] @ maps[r])[label]) for i, r, label in given])
    loss, likelihood = method.loss(model, batch, 0.5)
    assert loss.item() == pytest.approx(by_loops)
    assert likelihood.item() == pytest.approx(by_loops)
    np.testing.assert_allclose(method.confusion(model, batch.images).dense()[0].detach(), softmax(maps, axis=-1))


def test_a_crowd_layer_begins_as_the_identity():
    model = make_method("crowd-layer", "labels").build(DataSpec(2, RATERS, CLASSES, 0, "labels"))
    torch.testing.assert_close(model.annotators.maps.data, torch.eye(CLASSES).expand(RATERS, -1, -1))
