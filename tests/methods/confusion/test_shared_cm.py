"""shared-cm: one matrix for the vote of all."""

from __future__ import annotations

import numpy as np
import pytest
import torch


@pytest.mark.parametrize("weight", [0.0, 0.01, 0.5])
def test_shared_cm_is_cross_entropy_through_one_matrix_plus_its_trace(build, fused_batch, weight):
    method, model = build("shared-cm", trace_weight=weight)
    with torch.no_grad():
        for scores in model.annotators.parameters():
            scores.add_(torch.randn_like(scores))
    truth = model.log_truth(fused_batch.images).exp().detach().numpy()
    (matrix,) = model.annotators(fused_batch.images).dense()[0].detach().numpy()
    said = truth @ matrix
    given = -np.mean([np.log(said[0, 0]), np.log(said[1, 2]), np.log(said[3, 1]), np.log(said[4, 2])])
    loss, likelihood = method.loss(model, fused_batch, 0.5)
    assert likelihood.item() == pytest.approx(given)
    assert loss.item() == pytest.approx(given + weight * np.trace(matrix))
