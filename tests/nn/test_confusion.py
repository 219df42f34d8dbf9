"""Every kind of confusion must say the same in all its forms: likelihood, mean over an item, and the matrices."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from annotruth.metrics import per_item_confusion
from annotruth.nn import (
    Confusion,
    GlobalConfusion,
    GlobalLowRankConfusion,
    IdentityConfusion,
    LowRankConfusion,
    PixelConfusion,
    blocks,
)

BATCH, RATERS, CLASSES = 3, 2, 4
SIZES = [(), (5,), (4, 6), (2, 3, 4)]
KINDS = [
    "identity",
    "global",
    "global per item",
    "pixel",
    "low rank 1",
    "low rank 3",
    "global low rank 1",
    "global low rank 3",
]


def make(kind: str, size: tuple[int, ...]) -> Confusion:
    generator = torch.Generator().manual_seed(3)

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.double)

    if kind == "identity":
        return IdentityConfusion(RATERS, CLASSES)
    if kind == "global":
        return GlobalConfusion(draw(RATERS, CLASSES, CLASSES).softmax(dim=2))
    if kind == "global per item":
        return GlobalConfusion(draw(BATCH, RATERS, CLASSES, CLASSES).softmax(dim=3))
    if kind == "pixel":
        return PixelConfusion(2 * draw(BATCH, RATERS, CLASSES, CLASSES, *size))
    rank = int(kind[-1])
    if kind.startswith("global"):
        return GlobalLowRankConfusion(2 * draw(RATERS, 2, CLASSES, rank))
    head = nn.Conv1d(5, RATERS * 2 * CLASSES * rank, kernel_size=1).double()
    with torch.no_grad():
        head.weight.copy_(draw(*head.weight.shape))
    return LowRankConfusion(draw(BATCH, 5, *size), head, RATERS, CLASSES)


def data(size: tuple[int, ...]) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(4)
    log_truth = torch.randn(BATCH, CLASSES, *size, generator=generator, dtype=torch.double).log_softmax(dim=1)
    labels = torch.randint(CLASSES, (BATCH, RATERS, *size), generator=generator, dtype=torch.uint8)
    labels[torch.rand(labels.shape, generator=generator) < 0.3] = 255
    return log_truth, labels, torch.rand(log_truth.shape, generator=generator, dtype=torch.double)


def spread(matrices: Tensor, size: tuple[int, ...]) -> Tensor:
    """Matrices for every item and pixel, whoever shares one: (batch, raters, classes, classes, *size)."""
    missing = 4 + len(size) - matrices.ndim
    return matrices[(..., *[None] * missing)].expand(BATCH, RATERS, CLASSES, CLASSES, *size).double()


@pytest.fixture(params=["one block", "many blocks"])
def block_size(request, monkeypatch):
    if request.param == "many blocks":
        monkeypatch.setattr(blocks, "_NUMBERS_ON_CPU", 60)


@pytest.mark.usefixtures("block_size")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_likelihood_and_trace_are_those_of_the_matrices(kind, size):
    confusion, (log_truth, labels, row_weight) = make(kind, size), data(size)
    matrices = spread(confusion.dense(), size)
    observed = torch.einsum("bi...,brij...->brj...", log_truth.exp(), matrices)
    picked = observed.gather(2, (labels.long() % 255).unsqueeze(2)).squeeze(2)
    log_likelihood, trace = confusion.likelihood(log_truth, labels, row_weight)
    torch.testing.assert_close(log_likelihood, torch.where(labels == 255, 0, picked.log()))
    torch.testing.assert_close(trace, torch.einsum("bi...,brii...->br...", row_weight, matrices))
    _, whole = confusion.likelihood(log_truth, labels)
    torch.testing.assert_close(whole, torch.einsum("brii...->br...", matrices))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_is_the_mean_over_labels_given(kind, size):
    confusion, (log_truth, labels, row_weight) = make(kind, size), data(size)
    given = labels != 255
    for weight in (None, row_weight):
        log_likelihood, trace = confusion.likelihood(log_truth, labels, weight)
        for trace_weight in (0.0, 0.3):
            loss, likelihood = confusion.loss(log_truth, labels, trace_weight, weight)
            torch.testing.assert_close(likelihood, -log_likelihood[given].mean().detach())
            torch.testing.assert_close(loss, (trace_weight * trace - log_likelihood)[given].mean())


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_probabilities(kind):
    matrices = make(kind, (4, 6)).dense()
    assert (matrices >= 0).all()
    torch.testing.assert_close(matrices.sum(dim=3), torch.ones_like(matrices.sum(dim=3)))


@pytest.mark.usefixtures("block_size")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_mean_rows_are_what_the_metric_gives(kind, size):
    confusion, truth = make(kind, size), data(size)[0].exp()
    rows, weight = confusion.mean_rows(truth)
    assert rows.shape == (BATCH, RATERS, CLASSES, CLASSES)
    assert weight.shape == (BATCH, 1, CLASSES, 1)
    expected = per_item_confusion(truth.numpy(), spread(confusion.dense(), size).detach().numpy())
    np.testing.assert_allclose((rows / weight).detach().numpy(), expected)


@pytest.mark.parametrize("size", [(), (3,)])
@pytest.mark.parametrize("kind", KINDS[1:])
def test_gradients_are_those_of_finite_differences(kind, size, monkeypatch):
    monkeypatch.setattr(blocks, "_NUMBERS_ON_CPU", 60)
    log_truth, labels, row_weight = data(size)
    confusion = make(kind, size)
    values = {"pixel": "scores", "low rank": "features", "global low rank": "scores"}.get(
        kind.rstrip(" 123"), "matrices"
    )

    def explain(log_truth: Tensor, learnt: Tensor) -> tuple[Tensor, Tensor]:
        setattr(confusion, values, learnt)
        return confusion.likelihood(log_truth, labels, row_weight)

    assert torch.autograd.gradcheck(explain, (log_truth.requires_grad_(), getattr(confusion, values).requires_grad_()))


def test_everybody_at_their_word_needs_no_device_of_its_own():
    assert IdentityConfusion(2, 3, device="meta").dense().device.type == "meta"
    rows, _ = IdentityConfusion(2, 3).mean_rows(torch.empty(1, 3, 4, device="meta"))
    assert rows.device.type == "meta"


def test_impossible_entries_of_known_matrices_bring_no_broken_gradients():
    matrices = torch.eye(2).expand(1, 2, 2).clone().requires_grad_()
    log_truth = torch.tensor([[0.0, -150.0]], requires_grad=True)  # exp(-150) is 0 in single precision
    log_likelihood, _ = GlobalConfusion(matrices).likelihood(log_truth, torch.tensor([[1]]))
    assert log_likelihood.item() == -150
    for gradient in torch.autograd.grad(log_likelihood.sum(), (log_truth, matrices)):
        assert gradient.isfinite().all()
    never_one = GlobalConfusion(torch.tensor([[[1.0, 0.0], [1.0, 0.0]]]))
    assert never_one.likelihood(log_truth, torch.tensor([[1]]))[0].item() == -torch.inf


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
    monkeypatch.setattr(blocks, "_NUMBERS_ON_CPU", 2**10)
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
