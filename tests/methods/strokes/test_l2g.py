"""l2g: a local and a global network that teach each other."""

from __future__ import annotations

import torch

from annotruth.methods import Batch, DataSpec, make_method


def test_both_networks_of_l2g_learn():
    torch.manual_seed(0)
    made = make_method("l2g", "masks")
    model = made.build(DataSpec(channels=1, raters=1, classes=2, dims=2)).train()
    labels = torch.randint(0, 2, (2, 2, 16, 16), dtype=torch.uint8)
    made.loss(model, Batch(torch.randn(2, 1, 16, 16), labels), progress=0.9)[0].backward()
    for network in model.truth:
        assert any((weight.grad != 0).any() for weight in network.parameters() if weight.grad is not None)
