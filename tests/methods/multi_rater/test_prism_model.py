"""The model behind mrprism: where gradients end, and the mean of its matrices."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from annotruth.methods import Batch, DataSpec, make_method
from annotruth.methods.multi_rater.prism_model import MEAN_DECAY, Step
from annotruth.nn import NetworkPlan, plan_network


def test_gradients_do_not_cross_from_divp_to_conp_nor_between_recurrences():
    torch.manual_seed(0)
    method = make_method("mrprism", "masks")
    model = method.build(DataSpec(channels=1, raters=3, classes=2, dims=2))
    features = model.truth.features(torch.randn(2, 1, 32, 32))
    step = model.step(features, torch.full((2, 3, 32, 32), 0.5))
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


@pytest.mark.parametrize(
    "plan",
    [
        None,
        NetworkPlan("small", widths=(8, 16), strides=((1, 1), (2, 2)), kernels=((3, 3), (3, 3))),
        NetworkPlan("small", widths=(6, 9, 10), strides=((1, 1), (3, 1), (2, 2)), kernels=((3, 3),) * 3),
        plan_network((32, 8), deep_supervision=True).begun_with(8),
    ],
)
@pytest.mark.parametrize("method", ["mrprism", "mrnet"])
def test_any_plan_and_any_size_of_image_will_do(method, plan):
    torch.manual_seed(0)
    made = make_method(method, "masks")
    model = made.build(DataSpec(channels=1, raters=2, classes=3, dims=2, network=plan))
    batch = Batch(torch.randn(2, 1, 9, 14), torch.randint(0, 3, (2, 2, 9, 14), dtype=torch.uint8))
    made.loss(model, batch, progress=0.5)[0].backward()
    assert all(torch.isfinite(weight.grad).all() for weight in model.truth.parameters())
    assert model.log_truth(batch.images).shape == (2, 3, 9, 14)
    if method == "mrprism":
        assert made.confusion(model, batch.images).dense().shape == (2, 2, 3, 3, 9, 14)
        assert made.fuse_labels(model, batch.images, batch.labels).shape == (2, 3, 9, 14)


def test_images_are_padded_to_whole_strides_and_whole_patches():
    plan = NetworkPlan("small", widths=(8, 8), strides=((1, 1), (3, 2)), kernels=((3, 3), (3, 3)))
    prism = make_method("mrprism", "masks").build(DataSpec(1, 2, 2, dims=2, network=plan)).truth
    padded = prism.padded(torch.zeros(1, 2, 25, 12), 255.0)
    assert padded.shape == (1, 2, 36, 12)
    assert (padded[..., 25:, :] == 255).all()
    assert padded.shape[2:] == tuple(prism.padded_size(padded))
