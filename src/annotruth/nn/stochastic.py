"""Stochastic segmentation networks: logits that are Gaussian, and correlated over the whole picture."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import reduce

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotruth.nn.backbones import unet
from annotruth.nn.confusion import one_pixel_axis
from annotruth.nn.labels import class_index, is_labelled
from annotruth.nn.noise import even_noise
from annotruth.nn.plan import NetworkPlan

FEATURES = 16
"""Channels of the U-Net's last features, from which the Gaussian is read."""
FIRST_DEVIATION, MIN_DEVIATION = 0.1, 1e-3
"""Standard deviation of what is each pixel's own, before anything was learnt; and the least."""


class StochasticUNet(nn.Module):
    """Gives a Gaussian of the logits of all pixels together (Monteiro et al. 2020).

    Its covariance is F·Fᵀ + D: a few factors F, each a picture, by which the logits of all pixels move together, and
    what is each pixel's own, D, diagonal. One sample of it is one coherent drawing.

    Parameters
    ----------
    in_channels, classes : of the images, and of the labels
    dims : 2 or 3 spatial axes
    rank : how many factors there are
    draws : samples from which a likelihood is estimated; and how many the mean prediction takes in, whose factors are
        spread evenly and kept with the weights
    network : your own, from images to class logits (batch, classes, *spatial), which then serve as features; None = a
        U-Net
    plan : the stages of that U-Net; None = those for images of 64 pixels along each axis

    Examples
    --------
    >>> model = StochasticUNet(in_channels=1, classes=2).eval()
    >>> images = torch.rand(3, 1, 20, 20)
    >>> model(images).exp().shape  # probabilities, all drawings together
    torch.Size([3, 2, 20, 20])
    >>> model.drawings(images, 5, torch.Generator()).shape  # five drawings of each image
    torch.Size([5, 3, 2, 20, 20])

    One step of training, with two raters' masks of each image:

    >>> labels = (images > torch.tensor([0.4, 0.6]).view(2, 1, 1)).to(torch.uint8)
    >>> model.train().loss(images, labels).backward()
    """

    points: Tensor

    def __init__(
        self,
        in_channels: int,
        classes: int,
        dims: int = 2,
        rank: int = 10,
        draws: int = 20,
        network: nn.Module | None = None,
        plan: NetworkPlan | None = None,
    ) -> None:
        super().__init__()
        self.classes, self.rank, self.draws = classes, rank, draws
        self.features: nn.Module
        if network is None:
            self.features = nn.Sequential(unet(in_channels, FEATURES, dims, plan), nn.LeakyReLU())
        else:
            self.features = network
        channels = FEATURES if network is None else classes
        self.mean = nn.Conv1d(channels, classes, kernel_size=1)
        self.spread = nn.Conv1d(channels, classes, kernel_size=1)
        self.factors = nn.Conv1d(channels, classes * rank, kernel_size=1)
        self.register_buffer("points", even_noise(draws, rank))

    def forward(self, images: Tensor) -> Tensor:
        """Log-probabilities (batch, classes, *spatial) of the label that somebody picked at random would give.

        What is each pixel's own is left out: it moves no border.
        """
        mean, _, factors = self.gaussian(images)
        drawn = ((mean + one).log_softmax(dim=1) for one in _moved(factors, self.points[:, None]))
        return (reduce(torch.logaddexp, drawn) - math.log(self.draws)).view(-1, self.classes, *images.shape[2:])

    def drawings(self, images: Tensor, n: int, generator: torch.Generator) -> Tensor:
        """What people might draw: probabilities (n, batch, classes, *spatial); the likeliest labels are a drawing.

        Chance is the same for every image, so that windows of one image fit together.
        """
        mean, deviation, factors = self.gaussian(images)
        points = torch.randn(n, 1, self.rank, generator=generator).to(images)
        own = torch.randn(n, 1, *mean.shape[1:], generator=generator).to(images)
        drawn = [mean + one + deviation * grain for one, grain in zip(_moved(factors, points), own)]
        return torch.stack(drawn).softmax(dim=2).view(n, -1, self.classes, *images.shape[2:])

    def loss(self, images: Tensor, labels: Tensor) -> Tensor:
        """Negative log-likelihood of the drawings given (batch, raters, *spatial), per label given.

        A drawing's likelihood is the mean over samples of the product over its pixels, not the product of the pixels'
        means: so labels that always come together are learnt to do so.
        """
        mean, deviation, factors = self.gaussian(images)
        points = torch.randn(self.draws, len(images), self.rank, device=images.device, dtype=mean.dtype)
        labels = one_pixel_axis(labels, 2)
        given, observed = is_labelled(labels, self.classes), class_index(labels, self.classes)
        each = []
        for one in _moved(factors, points):
            log_drawn = (mean + one + deviation * torch.randn_like(mean)).log_softmax(dim=1)
            each.append((log_drawn.gather(1, observed) * given).sum(dim=2))
        log_likelihood = torch.stack(each).logsumexp(dim=0) - math.log(self.draws)
        return -log_likelihood.sum() / given.sum().clamp_min(1)

    def gaussian(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The logits' mean and deviation, (batch, classes, pixels) each, and factors (batch, rank, classes, pixels)."""
        features = one_pixel_axis(self.features(images), 2)
        deviation = F.softplus(self.spread(features) + math.log(math.expm1(FIRST_DEVIATION))) + MIN_DEVIATION
        factors = self.factors(features).unflatten(1, (self.rank, self.classes)) / self.rank**0.5
        return self.mean(features), deviation, factors


def _moved(factors: Tensor, points: Tensor) -> Iterator[Tensor]:
    """By how much factors (batch, rank, classes, pixels) move logits, for each point (batch or 1, rank)."""
    for point in points:
        yield (factors * point[:, :, None, None]).sum(dim=1)
