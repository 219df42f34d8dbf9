"""The loss that gradient methods share, and the traps that others fell into."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from annotruth.errors import InputError
from annotruth.nn import GlobalConfusion, IdentityConfusion, PixelConfusion, identity_scores, noisy_label_loss


def sure(truth: Tensor, classes: int) -> Tensor:
    """Log-probabilities of a network that is certain, and right."""
    return (60.0 * torch.eye(classes)[truth.long()]).movedim(-1, 1).log_softmax(dim=1)


def test_a_perfect_prediction_costs_nothing():
    """A softmax over what already are probabilities would cost log(1 + 1/e) = 0.31 for each label."""
    truth = torch.randint(2, (2, 6, 6))
    labels = truth.unsqueeze(1).repeat(1, 3, 1, 1)
    faithful = (60 * torch.eye(2) - 30)[:, :, None, None].expand(2, 3, 2, 2, 6, 6)
    for confusion in (IdentityConfusion(3, 2), GlobalConfusion(torch.eye(2).expand(3, 2, 2)), PixelConfusion(faithful)):
        loss, likelihood = noisy_label_loss(sure(truth, 2), confusion, labels)
        assert loss.item() == pytest.approx(0, abs=1e-6)
        assert likelihood.item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("trace_weight", [0.0, 0.5])
def test_raters_at_their_word_give_the_cross_entropy_of_their_labels(trace_weight):
    torch.manual_seed(0)
    logits, labels = torch.randn(2, 3, 5, 4, requires_grad=True), torch.randint(3, (2, 2, 5, 4))
    labels[0, 1, 2:], labels[1, 0, 0] = 255, 255
    loss, likelihood = noisy_label_loss(logits.log_softmax(dim=1), IdentityConfusion(2, 3), labels, trace_weight)
    pairs = logits[:, None].expand(-1, 2, -1, -1, -1)
    expected = F.cross_entropy(pairs.flatten(0, 1), labels.flatten(0, 1), ignore_index=255)
    torch.testing.assert_close(likelihood, expected.detach())
    assert loss.item() == pytest.approx(expected.item() + trace_weight)  # the probabilities of a pixel sum to 1
    torch.testing.assert_close(*(torch.autograd.grad(one, logits)[0] for one in (loss, expected)))


def test_the_loss_by_hand():
    log_truth = torch.tensor([[0.9, 0.1], [0.2, 0.8]]).log()
    labels = torch.tensor([[0, 1], [1, 255]])
    confusion = GlobalConfusion(torch.tensor([[[0.8, 0.2], [0.4, 0.6]], [[0.7, 0.3], [0.0, 1.0]]]))
    expected = (
        -(math.log(0.9 * 0.8 + 0.1 * 0.4) + math.log(0.9 * 0.3 + 0.1 * 1.0) + math.log(0.2 * 0.2 + 0.8 * 0.6)) / 3
    )
    plain = (1.4 + 1.7 + 1.4) / 3
    posterior = ((0.9 * 0.8 + 0.1 * 0.6) + (0.9 * 0.7 + 0.1 * 1.0) + (0.2 * 0.8 + 0.8 * 0.6)) / 3
    for trace, value in (("plain", plain), ("posterior", posterior)):
        loss, likelihood = noisy_label_loss(log_truth, confusion, labels, trace_weight=0.5, trace=trace)
        assert likelihood.item() == pytest.approx(expected)
        assert loss.item() == pytest.approx(expected + 0.5 * value)


def test_the_posterior_trace_leaves_rows_alone_about_which_labels_say_nothing():
    truth = torch.zeros(1, 4, dtype=torch.long)
    labels = torch.randint(3, (1, 2, 4))
    for trace in ("posterior", "plain"):
        scores = identity_scores(3)[:, :, None].repeat(1, 2, 1, 1, 4).requires_grad_()
        noisy_label_loss(sure(truth, 3), PixelConfusion(scores), labels, trace_weight=0.1, trace=trace)[0].backward()
        assert scores.grad is not None
        assert scores.grad[:, :, 0].abs().min() > 0
        assert (scores.grad[:, :, 1:].abs().max() < 1e-12) == (trace == "posterior")


def test_no_gradient_reaches_the_network_through_the_weights_of_the_trace():
    logits = torch.randn(2, 3, 5, requires_grad=True)
    labels = torch.randint(3, (2, 2, 5))
    faithless = GlobalConfusion(torch.full((2, 3, 3), 1 / 3))  # explains all labels alike: only the trace could pull
    noisy_label_loss(logits.log_softmax(dim=1), faithless, labels, trace_weight=1.0)[0].backward()
    assert logits.grad is not None
    assert logits.grad.abs().max() < 1e-7


def test_missing_labels_contribute_nothing():
    torch.manual_seed(0)
    log_truth = torch.randn(2, 3, 5).log_softmax(dim=1)
    scores = torch.randn(2, 2, 3, 3, 5)
    labels = torch.randint(3, (2, 2, 5))
    labels[0, 1], labels[1, 0, 2] = 255, 255
    junk = scores.clone()
    junk[0, 1], junk[1, 0, ..., 2] = 50 * torch.randn(3, 3, 5), 100.0
    silent = torch.cat([labels, torch.full((2, 1, 5), 255)], dim=1)
    results = []
    for each, said in ((scores, labels), (junk, labels), (torch.cat([scores, junk[:, :1]], dim=1), silent)):
        truth = log_truth.clone().requires_grad_()
        loss, _ = noisy_label_loss(truth, PixelConfusion(each), said, trace_weight=0.1)
        results.append((loss.detach(), *torch.autograd.grad(loss, truth)))
    for other in results[1:]:
        torch.testing.assert_close(results[0], other)


@pytest.mark.parametrize("trace_weight", [0.0, 0.1])
def test_a_batch_without_any_label_is_worth_zero(trace_weight):
    scores = torch.randn(1, 2, 3, 3, 5, requires_grad=True)
    labels = torch.full((1, 2, 5), 255, dtype=torch.uint8)
    loss, _ = noisy_label_loss(torch.randn(1, 3, 5).log_softmax(dim=1), PixelConfusion(scores), labels, trace_weight)
    loss.backward()
    assert loss.item() == 0
    assert scores.grad is not None
    assert (scores.grad == 0).all()


def test_an_unknown_trace_is_refused():
    with pytest.raises(InputError, match="Known: posterior, plain"):
        noisy_label_loss(torch.zeros(1, 2), IdentityConfusion(1, 2), torch.zeros(1, 1), trace="prior")
