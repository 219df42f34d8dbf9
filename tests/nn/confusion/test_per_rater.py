"""One matrix per rater: what is known to be impossible."""

from __future__ import annotations

import torch

from annotruth.nn import GlobalConfusion


def test_impossible_entries_of_known_matrices_bring_no_broken_gradients():
    matrices = torch.eye(2).expand(1, 2, 2).clone().requires_grad_()
    log_truth = torch.tensor([[0.0, -150.0]], requires_grad=True)  # exp(-150) is 0 in single precision
    log_likelihood, _ = GlobalConfusion(matrices).likelihood(log_truth, torch.tensor([[1]]))
    assert log_likelihood.item() == -150
    for gradient in torch.autograd.grad(log_likelihood.sum(), (log_truth, matrices)):
        assert gradient.isfinite().all()
    never_one = GlobalConfusion(torch.tensor([[[1.0, 0.0], [1.0, 0.0]]]))
    assert never_one.likelihood(log_truth, torch.tensor([[1]]))[0].item() == -torch.inf
