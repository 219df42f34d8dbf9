"""The model behind mrprism: where gradients end, and the mean of its matrices."""

from __future__ import annotations

import numpy as np
import torch

from annotruth.methods import DataSpec, make_method
from annotruth.methods.multi_rater.prism_model import MEAN_DECAY, Step


def test_gradients_do_not_cross_from_divp_to_conp_nor_between_recurrences():
    torch.manual_seed(0)
    method = make_method("mrprism", "masks")
    model = method.build(DataSpec(channels=1, raters=3, classes=2, dims=2))
    features = model.truth.features(torch.randn(2, 1, 12, 12))
    step = model.step(features, torch.full((2, 3, 12, 12), 0.5))
    step.scores.sum().backward()
    assert all(weight.grad is None for weight in model.truth.parameters())
    assert not step.confidences(torch.ones(2, 3)).requires_grad


def test_mean_matrices_by_hand():
    model = make_method("mrprism", "masks").build(DataSpec(raters=2, classes=2, channels=1, dims=2))
    before = model.typical()
    assert torch.equal(before.argmax(dim=2), torch.tensor([[0, 1], [0, 1]]))
    mask, matrices = torch.rand(3, 2, 16).softmax(dim=1), torch.rand(3, 2, 2, 2).softmax(dim=3)
    model.remember(Step(torch.empty(0), mask, torch.empty(0), matrices))
    for rater, true in np.ndindex(2, 2):
        mass = [MEAN_DECAY] + [float(mask[patch, true].sum()) for patch in range(3)]
        rows = [before[rater, true], *matrices[:, rater, true]]
        torch.testing.assert_close(model.typical()[rater, true], sum(m * row for m, row in zip(mass, rows)) / sum(mass))
