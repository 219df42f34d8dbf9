"""Matrices of low rank: their form, extreme scores, and that they never exist for all pixels at once."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from annotruth.nn import LowRankConfusion


def test_low_rank_is_a_product_plus_a_share_of_the_identity_normalised():
    """A = rownorm(B₁·B₂ᵀ + s·I), with s·I everywhere: left out in evaluation, faithful raters would look like noise."""
    left, right, identity = torch.rand(3, 2), torch.rand(3, 2), 1.7
    matrix = left @ right.T + identity * torch.eye(3)
    matrix = matrix / matrix.sum(dim=1, keepdim=True)
    odds = (left * right.sum(dim=0) / identity).log()
    scores = torch.stack([odds, right.log()]).view(1, 12, 1)
    confusion = LowRankConfusion(scores, nn.Identity(), raters=1, classes=3)
    torch.testing.assert_close(confusion.dense()[0, 0, :, :, 0], matrix)
    for observed in range(3):
        certain = (torch.eye(3) + 1e-30).log().unsqueeze(2)  # three items, each surely of its class
        many = LowRankConfusion(scores.expand(3, -1, -1), nn.Identity(), raters=1, classes=3)
        log_likelihood, _ = many.likelihood(certain, torch.full((3, 1, 1), observed))
        torch.testing.assert_close(log_likelihood.exp().flatten(), matrix[:, observed])


def test_low_rank_with_extreme_scores_stays_finite():
    """Surely class 0, and said 1: drawn from a pattern that hardly ever says so, and is hardly ever or always used."""
    log_truth = torch.tensor([[0.0, -400.0]], requires_grad=True)
    for odds, expected in ((-100.0, -300), (100.0, -200)):
        scores = torch.tensor([[odds, odds, 100.0, -100.0]], requires_grad=True)
        confusion = LowRankConfusion(scores, nn.Identity(), raters=1, classes=2)
        log_likelihood, trace = confusion.likelihood(log_truth, torch.tensor([[1]]))
        assert log_likelihood.item() == pytest.approx(expected)
        for gradient in torch.autograd.grad(log_likelihood.sum() + trace.sum(), (log_truth, scores)):
            assert gradient.isfinite().all()
            assert gradient.abs().max() == pytest.approx(1)


def test_low_rank_never_keeps_its_factors_for_all_pixels(monkeypatch):
    monkeypatch.setattr("annotruth.nn.confusion.base._BLOCK_SIZE_ON_CPU", 2**10)
    classes, pixels, largest = 30, 500, 0

    def note(tensor: Tensor) -> Tensor:
        nonlocal largest
        largest = max(largest, tensor.numel())
        return tensor

    features = torch.randn(1, 4, pixels, requires_grad=True)
    head = nn.Conv1d(4, 2 * classes, kernel_size=1)
    log_truth = torch.randn(1, classes, pixels).log_softmax(dim=1).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        confusion = LowRankConfusion(features, head, raters=1, classes=classes)
        log_likelihood, _ = confusion.likelihood(log_truth, torch.zeros(1, 1, pixels, dtype=torch.uint8))
    log_likelihood.sum().backward()
    assert largest < classes * pixels
    assert head.weight.grad is not None
