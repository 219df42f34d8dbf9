"""pixel-cm: truth and errors may share features."""

from __future__ import annotations

import pytest
import torch

from annotruth.errors import InputError
from annotruth.methods import Batch, DataSpec, make_method


@pytest.mark.parametrize("dims", [2, 3])
def test_truth_and_errors_may_share_features(dims):
    method = make_method("pixel-cm", "masks", {"features": "shared"})
    model = method.build(DataSpec(1, 3, 2, dims))
    model.joint_from.fill_(0.3)
    images, labels = torch.rand(2, 1, *[8] * dims), torch.randint(0, 2, (2, 3, *[8] * dims), dtype=torch.uint8)
    loss, _ = method.loss(model, Batch(images, labels), progress=0.9)
    loss.backward()
    assert all(weight.grad is not None for weight in model.parameters())
    assert method.confusion(model, images).dense().shape == (2, 3, 2, 2, *[8] * dims)
    with pytest.raises(InputError, match="network of your own"):
        method.build(DataSpec(1, 3, 2, dims), torch.nn.Identity())
