"""Models with one matrix per rater: extreme scores, known matrices, rows of some raters."""

from __future__ import annotations

import math

import pytest
import torch

from annotruth.nn import GlobalAnnotators, IdentityAnnotators, noisy_label_loss, rater_rows


def test_the_identity_stands_where_the_images_are():
    assert IdentityAnnotators(2, 3)(torch.empty(1, 1, 4, 4, device="meta")).dense().device.type == "meta"


@pytest.mark.parametrize("row", [[100.0, -100.0], [-100.0, -300.0]])
def test_a_global_matrix_with_extreme_scores_still_learns(row):
    model = GlobalAnnotators(1, 2)
    with torch.no_grad():
        model.scores[0, 0] = torch.tensor(row)
    log_truth = torch.tensor([[0.0, -300.0]])  # surely class 0, which this rater never takes for 1, and yet said 1
    loss, _ = noisy_label_loss(log_truth, model(log_truth), torch.tensor([[1]]), trace_weight=0.01)
    loss.backward()
    assert loss.item() == pytest.approx(-row[1] + math.log(100) if row[0] > 0 else row[0] - row[1], abs=0.02)
    assert model.scores.grad is not None
    assert model.scores.grad.isfinite().all()
    assert model.scores.grad[0, 0, 1].item() == pytest.approx(-1, abs=0.02)


def test_entries_of_zero_are_raised_where_a_matrix_is_set():
    model = GlobalAnnotators(1, 2)
    model.set_matrices(torch.eye(2)[None])
    matrices = model(torch.zeros(1, 3)).dense()[0, 0]
    torch.testing.assert_close(matrices, torch.tensor([[1.0, 0.001], [0.001, 1.0]]) / 1.001)


def test_gradients_of_some_rows_are_sparse_and_those_of_the_table():
    table = torch.randn(6, 2, requires_grad=True)
    weights = torch.randn(2, 2)
    (rater_rows(table, torch.tensor([4, 1])) * weights).sum().backward()
    sparse, table.grad = table.grad, None
    assert sparse.is_sparse
    (table[[4, 1]] * weights).sum().backward()
    torch.testing.assert_close(sparse.to_dense(), table.grad)
