"""The loss of pixel-wise matrices with its hand-written gradients, against the likelihood left to autograd."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from annotruth.nn import PixelConfusion, noisy_label_loss, observed_log_likelihood

SIZES = [(), (7,), (3, 5), (2, 3, 4)]


def by_autograd(log_truth: Tensor, scores: Tensor, labels: Tensor, trace_weight: float, trace: str) -> Tensor:
    row_weight = log_truth.detach().exp() if trace == "posterior" else None
    log_likelihood, traces = observed_log_likelihood(log_truth, scores, labels, row_weight)
    given = labels != 255
    return ((trace_weight * traces - log_likelihood) * given).sum() / given.sum()


@pytest.mark.usefixtures("block_size")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("trace_weight", "trace"), [(0.0, "plain"), (0.3, "plain"), (0.3, "posterior")])
@pytest.mark.parametrize("extreme", [False, True])
def test_values_and_gradients_are_those_of_autograd(problem, size, trace_weight, trace, extreme):
    log_truth, scores, labels, _ = problem(size)
    if extreme:
        with torch.no_grad():
            scores[0, 0, 0, 1] = -170
            scores[1, 1, 2] -= 220
            scores[1, 2, 0, 0] = 150
    expected = by_autograd(log_truth, scores, labels, trace_weight, trace)
    loss, likelihood = noisy_label_loss(log_truth, PixelConfusion(scores), labels, trace_weight, trace)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(likelihood, by_autograd(log_truth, scores, labels, 0.0, trace).detach())
    ours = torch.autograd.grad(3 * loss, (log_truth, scores))
    for one, other in zip(ours, torch.autograd.grad(3 * expected, (log_truth, scores))):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("row", [[100.0, -100.0], [-100.0, -200.0]])
def test_extreme_scores_stay_finite_and_keep_their_gradients(row):
    """Sure of class 0, which the rater never takes for 1, and yet said 1."""
    log_truth = torch.tensor([[0.0, -200.0]], requires_grad=True)
    scores = torch.tensor([[[row, [-100.0, 100.0]]]], requires_grad=True)
    loss, _ = noisy_label_loss(log_truth, PixelConfusion(scores), torch.tensor([[1]]), trace_weight=0.01)
    expected = by_autograd(log_truth.double(), scores.double(), torch.tensor([[1]]), 0.01, "posterior")
    torch.testing.assert_close(loss.double(), expected, rtol=1e-6, atol=0)
    of_truth, of_scores = torch.autograd.grad(loss, (log_truth, scores))
    assert of_truth.isfinite().all()
    assert of_scores.isfinite().all()
    assert of_scores[0, 0, 0, 1].item() == pytest.approx(-1, abs=0.02)  # say 1 more often, at full strength


def test_an_extreme_score_changes_nothing_for_other_pixels(problem):
    log_truth, scores, labels, _ = problem((30,))
    gradients = []
    for score in (scores[..., :1], torch.full_like(scores[..., :1], -1000)):
        single = torch.cat([score, scores[..., 1:]], dim=-1).detach().float().requires_grad_()
        loss, _ = noisy_label_loss(log_truth.detach().float(), PixelConfusion(single), labels, 0.1)
        gradients.append(torch.autograd.grad(loss, single)[0])
        assert gradients[-1].isfinite().all()
    torch.testing.assert_close(gradients[0][..., 1:], gradients[1][..., 1:])


def test_half_precision_scores_are_worked_on_in_single_precision(problem):
    log_truth, scores, labels, _ = problem((6,))
    half = scores.detach().bfloat16().requires_grad_()
    loss, _ = noisy_label_loss(log_truth.detach().bfloat16(), PixelConfusion(half), labels)
    assert loss.dtype == torch.float32
    exact = by_autograd(log_truth.detach().bfloat16().double(), half.detach().double(), labels, 0.0, "plain")
    torch.testing.assert_close(loss, exact.float())
    loss.backward()
    assert half.grad is not None
    assert half.grad.dtype == torch.bfloat16


def test_any_memory_layout_will_do(problem):
    log_truth, scores, labels, _ = problem((4, 6))
    channels_last = scores.detach().flatten(1, 3).to(memory_format=torch.channels_last).view(scores.shape)
    assert not channels_last.is_contiguous()
    loss, _ = noisy_label_loss(log_truth, PixelConfusion(channels_last), labels, 0.1)
    torch.testing.assert_close(loss, noisy_label_loss(log_truth, PixelConfusion(scores), labels, 0.1)[0])


def test_where_nothing_is_learnt_no_gradient_is_computed(problem):
    log_truth, scores, labels, _ = problem((6,))
    with torch.no_grad():
        loss, likelihood = noisy_label_loss(log_truth, PixelConfusion(scores), labels, 0.1)
    assert not loss.requires_grad
    learnt, likelihood_again = noisy_label_loss(log_truth, PixelConfusion(scores.detach()), labels, 0.1)
    assert not likelihood_again.requires_grad
    torch.testing.assert_close((loss, likelihood), (learnt.detach(), likelihood_again))
    learnt.backward()
    assert log_truth.grad is not None
    assert scores.grad is None


def test_gradients_are_handed_out_once(problem):
    log_truth, scores, labels, _ = problem((6,))
    loss, _ = noisy_label_loss(log_truth, PixelConfusion(scores), labels)
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="compute the loss once more"):
        loss.backward()


def test_only_gradients_are_kept_for_the_backward_pass(problem):
    """The scores themselves are kept by nobody, and so nothing else of their size."""
    log_truth, scores, labels, _ = problem((16, 16), classes=5)
    kept = 0

    def note(tensor: Tensor) -> Tensor:
        nonlocal kept
        kept += tensor.numel()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        noisy_label_loss(log_truth, PixelConfusion(scores), labels, 0.1)
    assert kept == 0
