"""Stochastic segmentation networks: samples and likelihood against PyTorch's low-rank Gaussian and plain loops."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import LowRankMultivariateNormal

from annotruth.nn import StochasticUNet


@pytest.fixture
def model() -> StochasticUNet:
    torch.manual_seed(0)
    model = StochasticUNet(in_channels=1, classes=3, rank=2, draws=4, network=nn.Conv2d(1, 3, 1)).eval()
    with torch.no_grad():
        model.factors.weight.mul_(4)
        model.spread.bias.add_(2)
    return model


@pytest.fixture
def images() -> Tensor:
    return torch.randn(2, 1, 2, 3, generator=torch.Generator().manual_seed(1))


def reference(model: StochasticUNet, images: Tensor) -> LowRankMultivariateNormal:
    """The Gaussian of all logits of an image in one row, classes before pixels."""
    mean, deviation, factors = model.gaussian(images)
    return LowRankMultivariateNormal(mean.flatten(1), factors.flatten(2).mT, deviation.flatten(1) ** 2)


@torch.no_grad()
def test_samples_are_those_of_pytorchs_low_rank_gaussian(model, images):
    """By their means and covariances. Logits are told from a drawing only up to a constant at each pixel."""
    drawn = model.drawings(images, 6000, torch.Generator().manual_seed(0)).log()
    logits = (drawn - drawn[:, :, :1])[:, :, 1:].flatten(2)  # over the first class
    exact = reference(model, images)
    across = torch.cat([-torch.eye(6).repeat(2, 1), torch.eye(12)], dim=1)
    expected = across @ exact.covariance_matrix @ across.T
    for item in range(2):
        torch.testing.assert_close(logits[:, item].mean(dim=0), across @ exact.mean[item], atol=0.15, rtol=0)
        torch.testing.assert_close(logits[:, item].T.cov(), expected[item], atol=0.3, rtol=0.1)
    assert expected[0, 0, 1].abs() > 0.5  # pixels do depend on each other


@torch.no_grad()
def test_the_loss_is_the_likelihood_of_whole_drawings(model, images):
    """Against samples of PyTorch's own Gaussian; with so many that chance does not matter."""
    labels = torch.tensor([[[[0, 1, 2], [255, 1, 0]], [[255] * 3] * 2], [[[2, 2, 2], [0, 0, 0]], [[1] * 3] * 2]])
    model.draws = 4000
    torch.manual_seed(0)
    loss = model.loss(images, labels.to(torch.uint8))
    logs = reference(model, images).sample((4000,)).view(4000, 2, 3, 6).log_softmax(dim=2)
    total = 0.0
    for item, rater in ((0, 0), (1, 0), (1, 1)):
        flat = labels[item, rater].flatten().tolist()
        each = sum(logs[:, item, label, pixel] for pixel, label in enumerate(flat) if label != 255)
        total -= (each.logsumexp(dim=0) - math.log(4000)).item()
    assert loss.item() == pytest.approx(total / 17, rel=0.03)


def test_predictions_are_the_mean_over_kept_points(model, images):
    mean, _, factors = model.gaussian(images)
    each = [(mean + (point.view(1, 2, 1, 1) * factors).sum(dim=1)).softmax(dim=1) for point in model.points]
    torch.testing.assert_close(model(images).exp(), torch.stack(each).mean(dim=0).view(2, 3, 2, 3))
    assert "points" in model.state_dict()
