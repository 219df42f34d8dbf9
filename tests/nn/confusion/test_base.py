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
        monkeypatch.setattr("annotruth.nn.confusion.base._BLOCK_SIZE_ON_CPU", 60)


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
    monkeypatch.setattr("annotruth.nn.confusion.base._BLOCK_SIZE_ON_CPU", 60)
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
