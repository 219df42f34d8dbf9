"""Matrices that move together: their likelihood of drawings against plain loops, and means over moods."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from annotruth.nn import CorrelatedConfusion, PixelConfusion

CLASSES, RANK, DRAWS = 3, 2, 4


@pytest.fixture
def log_truth() -> Tensor:
    return torch.randn(2, CLASSES, 2, 3, generator=torch.Generator().manual_seed(0)).log_softmax(dim=1)


@pytest.fixture
def labels() -> Tensor:
    drawn = torch.randint(0, CLASSES, (2, 2, 2, 3), generator=torch.Generator().manual_seed(1), dtype=torch.uint8)
    drawn[0, 1] = 255  # a rater who did not label
    drawn[1, 0, 0] = 255  # half an image
    return drawn


@pytest.fixture
def confusion() -> CorrelatedConfusion:
    torch.manual_seed(2)
    scores = torch.randn(2, 2, CLASSES, CLASSES, 2, 3)
    factors = 2 * torch.randn(2, 2, RANK, CLASSES, CLASSES, 2, 3)
    return CorrelatedConfusion(scores, factors, torch.randn(DRAWS, 2, 2, RANK))


def matrix(confusion: CorrelatedConfusion, draw: int, item: int, rater: int, row: int, column: int) -> Tensor:
    """One matrix by the formula: softplus of mean and factors, row by row."""
    scores = confusion.scores[item, rater, :, :, row, column].clone()
    for k in range(RANK):
        scores += confusion.points[draw, item, rater, k] * confusion.factors[item, rater, k, :, :, row, column]
    weights = (1 + scores.double().exp()).log()
    return weights / weights.sum(dim=1, keepdim=True)


def test_the_loss_is_the_likelihood_of_drawings_and_of_pixels_by_hand(confusion, log_truth, labels):
    of_drawings = of_pixels = 0.0
    for item in range(2):
        for rater in range(2):
            drawings = [0.0] * DRAWS
            for row, column in (labels[item, rater] != 255).nonzero().tolist():
                said, truth = int(labels[item, rater, row, column]), log_truth[item, :, row, column].exp()
                each = [
                    float(truth.double() @ matrix(confusion, m, item, rater, row, column)[:, said]) for m in range(4)
                ]
                of_pixels -= math.log(sum(each) / DRAWS)
                drawings = [so_far + math.log(one) for so_far, one in zip(drawings, each)]
            of_drawings -= math.log(sum(map(math.exp, drawings)) / DRAWS)
    loss, likelihood = confusion.loss(log_truth, labels)
    assert loss.item() == pytest.approx((of_drawings + of_pixels) / 2 / 15, rel=1e-4)
    assert likelihood.item() == pytest.approx(of_drawings / 15, rel=1e-4)


def test_what_is_told_of_single_pixels_is_told_by_the_mean_matrix(confusion, log_truth, labels):
    mean = confusion.dense()
    torch.testing.assert_close(
        mean[1, 0, :, :, 1, 2].double(), sum(matrix(confusion, m, 1, 0, 1, 2) for m in range(4)) / 4
    )
    told, trace = confusion.likelihood(log_truth, labels)
    expected = torch.einsum("bi...,brij...->brj...", log_truth.exp(), mean)[1, 1].gather(0, labels[1, 1].long()[None])[
        0
    ]
    torch.testing.assert_close(told[1, 1].exp(), expected)
    torch.testing.assert_close(trace, mean.diagonal(dim1=2, dim2=3).sum(dim=-1))
    rows, _ = confusion.mean_rows(log_truth.exp())
    torch.testing.assert_close(rows, torch.einsum("bi...,brij...->brij", log_truth.exp(), mean))


def test_without_factors_it_is_a_matrix_per_pixel(confusion, log_truth, labels):
    still = CorrelatedConfusion(confusion.scores, torch.zeros_like(confusion.factors), confusion.points)
    expected = PixelConfusion(confusion.scores).loss(log_truth, labels, 0.3, log_truth.exp())
    torch.testing.assert_close(still.loss(log_truth, labels, 0.3, log_truth.exp()), expected)


def test_one_drawing_has_the_matrices_of_its_point(confusion, log_truth):
    point = confusion.points[3, 0, 1]
    drawn = confusion.drawn(log_truth, 1, point).exp()
    expected = log_truth[0, :, 1, 0].double().exp() @ matrix(confusion, 3, 0, 1, 1, 0)
    torch.testing.assert_close(drawn[0, :, 1, 0].double(), expected, rtol=1e-5, atol=1e-6)
