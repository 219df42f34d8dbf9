"""The Probabilistic U-Net: its bound against Gaussians computed by hand, one point one drawing, any data."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence

from annotruth.nn import ProbabilisticUNet
from annotruth.nn.labels import one_hot
from annotruth.nn.prob_unet import GaussianEncoder


class Fixed(nn.Module):
    """An encoder that gives the same Gaussian whatever it is shown, and remembers what it was shown."""

    def __init__(self, mean: Tensor, deviation: Tensor) -> None:
        super().__init__()
        self.mean, self.deviation = mean, deviation

    def forward(self, images: Tensor) -> Normal:
        self.seen = images
        return Normal(self.mean.expand(len(images), -1), self.deviation.expand(len(images), -1))


@pytest.fixture
def model() -> ProbabilisticUNet:
    torch.manual_seed(0)
    return ProbabilisticUNet(in_channels=1, classes=3, latent=2, draws=4).eval()


@pytest.fixture
def images() -> Tensor:
    return torch.randn(2, 1, 8, 8, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def labels() -> Tensor:
    drawn = torch.randint(0, 3, (2, 3, 8, 8), generator=torch.Generator().manual_seed(2), dtype=torch.uint8)
    drawn[0, 1] = 255  # a rater who did not label
    drawn[1, 0, :4] = 255  # half an image
    return drawn


def gaussian_divergence(mean: Tensor, deviation: Tensor, to_mean: Tensor, to_deviation: Tensor) -> float:
    """Σ log σ′/σ + (σ² + (μ − μ′)²) / 2σ′² − ½, in plain numbers."""
    total = 0.0
    for m, s, n, t in zip(mean.tolist(), deviation.tolist(), to_mean.tolist(), to_deviation.tolist()):
        total += math.log(t / s) + (s**2 + (m - n) ** 2) / (2 * t**2) - 0.5
    return total


@pytest.mark.parametrize("beta", [0.0, 1.0, 10.0])
def test_the_loss_is_likelihood_dice_and_divergence_by_hand(model, images, labels, beta):
    prior = torch.tensor([0.5, -1.0]), torch.tensor([1.5, 0.7])
    posterior = torch.tensor([-0.3, 2.0]), torch.tensor([1e-12, 1e-12])  # as good as a point, so nothing is random
    model.prior, model.posterior = Fixed(*prior), Fixed(*posterior)
    loss, bound = model.loss(images, labels, beta)
    probabilities = model.drawings(images, ((posterior[0] - prior[0]) / prior[1])[None])[0]
    nats, drawings, given, overlap, area = 0.0, 0, 0, [0.0, 0.0], [0.0, 0.0]
    for item in range(2):
        for rater in range(3):
            drawings += bool((labels[item, rater] != 255).any())
            for row, column in (labels[item, rater] != 255).nonzero().tolist():
                label = int(labels[item, rater, row, column])
                nats -= math.log(probabilities[item, label, row, column].item())
                given += 1
                for part in (1, 2):
                    said = probabilities[item, part, row, column].item()
                    overlap[part - 1] += said * (label == part)
                    area[part - 1] += said + (label == part)
    assert drawings == 5
    of_dice = 1 - sum((2 * both + 1) / (each + 1) for both, each in zip(overlap, area)) / 2
    divergence = drawings * gaussian_divergence(*posterior, *prior)
    assert loss.item() == pytest.approx((nats + beta * divergence) / given + of_dice, rel=1e-4)
    assert bound.item() == pytest.approx((nats + divergence) / given, rel=1e-4)
    assert not bound.requires_grad


def test_the_divergence_is_that_of_pytorch_from_posterior_to_prior(model, images, labels):
    for encoder in (model.prior, model.posterior):
        nn.init.normal_(encoder.head.weight)  # far from the start, where all Gaussians are alike
    torch.manual_seed(0)
    without, bound = model.loss(images, labels, beta=0.0)
    torch.manual_seed(0)
    with_divergence, same_bound = model.loss(images, labels, beta=1.0)
    prior, total = model.prior(images), 0.0
    for item in range(2):
        for rater in range(3):
            if (labels[item, rater] != 255).any():
                shown = torch.cat([images[[item]], one_hot(labels[item, [rater]], 3)], dim=1)
                total += kl_divergence(model.posterior(shown), Normal(prior.mean[item], prior.stddev[item])).sum()
    assert total > 0.1
    torch.testing.assert_close(with_divergence - without, total / (labels != 255).sum())
    torch.testing.assert_close(bound, same_bound)  # whatever beta is


def test_the_bound_is_one(model, images, labels):
    """On average no less than the negative log-likelihood, which many points of the prior estimate."""
    for encoder in (model.prior, model.posterior):
        nn.init.normal_(encoder.head.weight, std=0.2)
    labels = labels[1:, 1:2]
    torch.manual_seed(0)
    bound = torch.stack([model.loss(images[1:], labels)[1] for _ in range(50)]).mean()
    points = model.drawings(images[1:], torch.randn(500, 2))[:, 0]  # (points, classes, *spatial)
    each = points.log().gather(1, labels[0].long().expand(500, 1, 8, 8)).flatten(1).sum(dim=1)
    assert bound > -(each.logsumexp(dim=0) - math.log(500)) / labels.numel()


def test_the_posterior_is_shown_each_drawing_that_was_given(model, images, labels):
    model.posterior = Fixed(torch.zeros(2), torch.ones(2))
    model.loss(images, labels)
    seen = model.posterior.seen
    assert seen.shape == (5, 1 + 3, 8, 8)
    torch.testing.assert_close(seen[:, 0], images[[0, 0, 1, 1, 1], 0])
    assert (seen[2, 1:, :4] == 0).all()  # not labelled: no class
    torch.testing.assert_close(seen[4, 1:].argmax(dim=0), labels[1, 2].long())


@pytest.mark.parametrize(("item", "rater"), [(0, 0), (1, 2)])
def test_whoever_did_not_label_teaches_nothing(model, images, labels, item, rater):
    """A rater more without labels, or another image without any, leave the loss as it was."""
    alone = labels.clone()
    alone[:] = 255
    alone[item, rater] = labels[item, rater]
    torch.manual_seed(0)
    among, _ = model.loss(images, alone)
    torch.manual_seed(0)
    by_itself, _ = model.loss(images[[item]], labels[[item]][:, [rater]])
    torch.testing.assert_close(among, by_itself)


def test_predictions_are_the_mean_of_fixed_drawings(model, images):
    probabilities = model(images).exp()
    torch.testing.assert_close(probabilities, model.drawings(images, model.noise).mean(dim=0))
    torch.testing.assert_close(probabilities.sum(dim=1), torch.ones(2, 8, 8))
    assert torch.equal(model(images), model(images))
    assert "noise" in model.state_dict()


def test_a_point_joins_every_pixel_as_if_laid_beside_its_features(model, images):
    """The two maps that meet are one 1×1 convolution of features and latent together."""
    noise = torch.tensor([[0.3, -1.2]])
    prior, features = model.prior(images), model.features(images)
    latent = prior.mean + prior.stddev * noise
    together = torch.cat([features, latent[:, :, None, None].expand(-1, -1, 8, 8)], dim=1)
    weight = torch.cat([model.from_features.weight[:, :, 0], model.from_latent.weight], dim=1)
    joined = torch.einsum("oc,bchw->bohw", weight, together) + model.from_features.bias[:, None, None]
    expected = model.head(joined.flatten(2)).view(2, 3, 8, 8).softmax(dim=1)
    torch.testing.assert_close(model.drawings(images, noise)[0], expected)


@pytest.mark.parametrize("size", [(8, 8), (1, 1), (5, 13), (4, 3, 6), (1, 1, 1)])
def test_any_size_in_two_and_three_dimensions(size):
    model = ProbabilisticUNet(in_channels=2, classes=2, dims=len(size), latent=3, draws=2)
    images, labels = torch.randn(1, 2, *size), torch.ones(1, 1, *size, dtype=torch.uint8)
    loss, _ = model.loss(images, labels)
    loss.backward()
    assert all(weight.grad is not None and torch.isfinite(weight.grad).all() for weight in model.parameters())
    assert model(images).shape == (1, 2, *size)
    assert model.drawings(images, torch.randn(5, 3)).shape == (5, 1, 2, *size)


def test_encoders_start_near_the_standard_normal():
    torch.manual_seed(0)
    gaussian = GaussianEncoder(in_channels=3, latent=4)(torch.randn(6, 3, 20, 20))
    torch.testing.assert_close(gaussian.mean, torch.zeros(6, 4), atol=0.3, rtol=0)
    torch.testing.assert_close(gaussian.stddev, torch.ones(6, 4), atol=0.3, rtol=0)


def test_a_network_of_ones_own_serves_as_features():
    network = nn.Conv2d(1, 2, 3, padding=1)
    model = ProbabilisticUNet(in_channels=1, classes=2, network=network)
    images = torch.randn(2, 1, 8, 8)
    loss, _ = model.loss(images, torch.zeros(2, 1, 8, 8, dtype=torch.uint8))
    loss.backward()
    assert network.weight.grad.abs().sum() > 0
    assert model(images).shape == (2, 2, 8, 8)
