"""crowd-ar on label tables, by loops."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, softmax


def test_targets_are_softened_by_reliability(build_shaken, given, batch):
    method, model = build_shaken("crowd-ar")
    layer = model.annotators
    truth = softmax(model.truth(batch.images).detach().numpy(), axis=-1)
    difficulty = expit(layer.difficulty(layer.items(batch.images).sigmoid()).detach().numpy())
    expertise, maps = expit(layer.expertise.detach().numpy()), layer.maps.detach().numpy()
    scales, offset = np.log1p(np.exp(layer.scales.detach().numpy())), layer.offset.item()
    of_labels, of_reliability, own = [], [], []
    for item, rater, label in given:
        said = np.log(softmax(truth[item] @ maps[rater]))
        reliable = expit(((expertise[rater] - difficulty[item]) * truth[item]) @ scales + offset)
        target = reliable * np.eye(3)[label] + (1 - reliable) / 3
        of_labels.append(-target @ said)
        right = truth[item].argmax() == label
        of_reliability.append(-np.log(reliable if right else 1 - reliable))
        own.append(-said[label])
    loss, likelihood = method.loss(model, batch, 0.5)
    assert loss.item() == pytest.approx(0.9 * np.mean(of_labels) + 0.1 * np.mean(of_reliability))
    assert likelihood.item() == pytest.approx(np.mean(own))
