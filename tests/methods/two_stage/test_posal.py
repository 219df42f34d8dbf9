"""posal: overlap, evenness inside a class, and a discriminator of masks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from annotruth.errors import InputError
from annotruth.methods import Batch, DataSpec, make_method
from annotruth.methods.two_stage.posal import unevenness
from annotruth.nn import dice_loss
from annotruth.nn.labels import one_hot


def test_unevenness_is_a_mean_over_direct_neighbours_of_one_label():
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(3), size=(2, 4, 5)).transpose(0, 3, 1, 2)
    labels = rng.choice([0, 1, 2, 255], size=(2, 4, 5)).astype(np.uint8)
    steps = []
    for item, row, column in np.ndindex(*labels.shape):
        label = labels[item, row, column]
        for at in ((row + 1, column), (row, column + 1)):
            if at[0] < 4 and at[1] < 5 and label != 255 and labels[item, at[0], at[1]] == label:
                steps.append(abs(probabilities[item, label, row, column] - probabilities[item, label, at[0], at[1]]))
    found = unevenness(torch.tensor(probabilities), torch.tensor(labels))
    assert found.item() == pytest.approx(np.mean(steps))


def test_the_loss_adds_overlap_evenness_and_what_is_found_out():
    torch.manual_seed(0)
    method = make_method("posal", "masks", {"smoothness": 0.5, "adversarial": 0.2})
    model = method.build(DataSpec(channels=1, raters=3, classes=2, dims=2), nn.Conv2d(1, 2, 3, padding=1)).eval()
    labels = torch.randint(0, 2, (2, 1, 9, 8), dtype=torch.uint8)
    labels[1, 0, 2:4] = 255
    batch = Batch(torch.rand(2, 1, 9, 8), labels)
    log_truth, vote = model.log_truth(batch.images), labels[:, 0]
    known = vote != 255
    judged = method.judged(model, {"mask": one_hot(vote, 2)}, {"mask": log_truth.exp()}, known, 0.5)
    expected = dice_loss(log_truth, vote) + 0.5 * unevenness(log_truth.exp(), vote) + judged
    loss, likelihood = method.loss(model, batch, 0.5)
    torch.testing.assert_close(loss, expected)
    entropy = nn.functional.cross_entropy(model.truth(batch.images).movedim(1, -1)[known], vote[known].long())
    torch.testing.assert_close(likelihood, entropy)


def test_a_negative_weight_is_refused():
    with pytest.raises(InputError, match="smoothness must not be negative"):
        make_method("posal", "masks", {"smoothness": -0.1})
