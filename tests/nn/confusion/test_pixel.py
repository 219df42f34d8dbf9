"""The likelihood of labels under pixel-wise matrices, against one batched matrix product per pixel."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from annotruth.nn import identity_scores, observed_log_likelihood

SIZES = [(), (7,), (3, 5), (2, 3, 4)]


def by_matrix_products(log_truth: Tensor, scores: Tensor, labels: Tensor, row_weight: Tensor) -> tuple[Tensor, Tensor]:
    """The same, one matrix and one product per pixel and rater."""
    batch, raters, classes = scores.shape[:3]
    log_likelihood, trace = [], []
    truth = log_truth.reshape(batch, classes, -1).transpose(1, 2).reshape(-1, 1, classes).exp()
    weight = row_weight.reshape(batch, classes, -1).transpose(1, 2).reshape(-1, classes)
    for rater in range(raters):
        matrices = F.softplus(scores[:, rater].reshape(batch, classes, classes, -1)).permute(0, 3, 1, 2)
        matrices = (matrices / matrices.sum(dim=3, keepdim=True)).reshape(-1, classes, classes)
        observed = labels[:, rater].reshape(-1)
        picked = torch.bmm(truth, matrices).squeeze(1)[torch.arange(len(observed)), observed.long() % 255]
        log_likelihood.append(torch.where(observed == 255, 0, picked.log()).view(labels[:, rater].shape))
        trace.append((matrices.diagonal(dim1=1, dim2=2) * weight).sum(dim=1).view(labels[:, rater].shape))
    return torch.stack(log_likelihood, dim=1), torch.stack(trace, dim=1)


@pytest.mark.usefixtures("block_size")
@pytest.mark.parametrize("size", SIZES)
def test_values_and_gradients_are_those_of_matrix_products(problem, size):
    log_truth, scores, labels, _ = inputs = problem(size)
    results = []
    for function in (observed_log_likelihood, by_matrix_products):
        log_likelihood, trace = function(*inputs)
        weights = torch.rand(labels.shape, generator=torch.Generator().manual_seed(1), dtype=torch.double)
        gradients = torch.autograd.grad((weights * (2 * log_likelihood + trace)).sum(), (log_truth, scores))
        results.append((log_likelihood, trace, *gradients))
    for ours, reference in zip(*results):
        torch.testing.assert_close(ours, reference)


@pytest.mark.parametrize("size", [(), (2,), (2, 2), (1, 2, 1)])
def test_gradients_are_those_of_finite_differences(problem, size):
    log_truth, scores, labels, row_weight = problem(size, raters=3)
    # Entries, and a whole row, far below what an exponential in single precision can hold.
    scores = scores.detach().clone()
    scores[0, 0, 0, 1] = -70
    scores[1, 1, 2] -= 120
    for each in (scores, problem(size, raters=3)[1].detach()):
        assert torch.autograd.gradcheck(
            lambda t, s: observed_log_likelihood(t, s, labels, row_weight), (log_truth, each.requires_grad_())
        )


def test_without_weights_the_trace_is_the_whole_diagonal(problem):
    log_truth, scores, labels, _ = problem((4,))
    with_ones = observed_log_likelihood(log_truth, scores, labels, torch.ones_like(log_truth))
    torch.testing.assert_close(observed_log_likelihood(log_truth, scores, labels), with_ones)


def test_extreme_scores_stay_finite_and_keep_their_gradients():
    """Sure of class 0, where the rater never says 1, and said 1: nothing but the logarithm's domain can hold it."""
    log_truth = torch.tensor([[0.0, -200.0]], requires_grad=True)
    for scores in ([[100.0, -100.0], [-100.0, 100.0]], [[-100.0, -200.0], [-100.0, -100.0]]):
        matrices = torch.tensor([[scores]], requires_grad=True)
        log_likelihood, trace = observed_log_likelihood(log_truth, matrices, torch.tensor([[1]]))
        reference = torch.tensor([scores], dtype=torch.double)
        reference = (reference.exp().log1p() / reference.exp().log1p().sum(dim=2, keepdim=True)).squeeze(0)
        expected = (log_truth.double().exp() @ reference)[0, 1].log()
        torch.testing.assert_close(log_likelihood.squeeze().double(), expected, rtol=1e-6, atol=0)
        of_truth, of_scores = torch.autograd.grad(log_likelihood.sum() + trace.sum(), (log_truth, matrices))
        assert of_truth.isfinite().all()
        assert of_scores.isfinite().all()
        assert of_scores[0, 0, 0, 1].item() == pytest.approx(1, abs=0.01)  # say 1 more often, at full strength


def test_an_extreme_score_changes_nothing_for_other_pixels(problem):
    log_truth, scores, labels, row_weight = (tensor.detach() for tensor in problem((30,)))
    extreme = scores.clone()
    extreme[..., 0] = -1000
    results = []
    for each in (scores, extreme):
        single = (log_truth.float().requires_grad_(), each.float().requires_grad_())
        outputs = observed_log_likelihood(*single, labels, row_weight.float())
        gradients = torch.autograd.grad(outputs[0].sum() + outputs[1].sum(), single)
        results.append([result[..., 1:] for result in (*outputs, *gradients)])
        assert all(result.isfinite().all() for result in (*outputs, *gradients))
    torch.testing.assert_close(*results, rtol=1e-5, atol=1e-6)


def test_missing_labels_are_worth_nothing(problem):
    log_truth, scores, _, _ = problem((6,))
    labels = torch.full((2, 4, 6), 255, dtype=torch.uint8)
    log_likelihood, _ = observed_log_likelihood(log_truth, scores, labels)
    assert (log_likelihood == 0).all()
    for gradient in torch.autograd.grad(log_likelihood.sum(), (log_truth, scores)):
        assert (gradient == 0).all()


def test_half_precision_scores_are_worked_on_in_single_precision(problem):
    log_truth, scores, labels, row_weight = (tensor.detach() for tensor in problem((6,)))
    half = scores.bfloat16().requires_grad_()
    ours = observed_log_likelihood(log_truth.bfloat16(), half, labels, row_weight)
    reference = by_matrix_products(log_truth.bfloat16().double(), half.detach().double(), labels, row_weight)
    torch.testing.assert_close(ours[0], reference[0].float())
    ours[0].sum().backward()
    assert half.grad is not None
    assert half.grad.dtype == torch.bfloat16


def test_any_memory_layout_will_do(problem):
    log_truth, scores, labels, row_weight = (tensor.detach() for tensor in problem((4, 6)))
    channels_last = scores.flatten(1, 3).to(memory_format=torch.channels_last).view(scores.shape)
    assert not channels_last.is_contiguous()
    cropped = F.pad(log_truth, (0, 3))[..., :6]
    torch.testing.assert_close(
        observed_log_likelihood(cropped, channels_last, labels, row_weight),
        observed_log_likelihood(log_truth, scores, labels, row_weight),
    )


def test_identity_scores_are_six_on_the_diagonal_less_five():
    torch.testing.assert_close(identity_scores(3), torch.full((3, 3), -5.0).fill_diagonal_(1.0))
