"""The Probabilistic U-Net: many coherent drawings of one image, told apart by a few hidden numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import reduce
from itertools import pairwise

import torch
import torch.nn.functional as F
from monai.networks.blocks import Convolution
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence

from annotruth.nn.backbones import unet
from annotruth.nn.confusion import IdentityConfusion, one_pixel_axis
from annotruth.nn.labels import one_hot
from annotruth.nn.losses import dice_loss, noisy_label_loss
from annotruth.nn.noise import even_noise
from annotruth.nn.plan import NetworkPlan
from annotruth.validation import MISSING_PIXEL

FEATURES = 16
"""Channels of the U-Net's last features, and of the layers behind them."""
MIN_DEVIATION = 1e-3
"""Floor under the latent's standard deviation, so that no divergence is infinite."""


class ProbabilisticUNet(nn.Module):
    """Gives the drawings that different people might make of an image (Kohl et al. 2018).

    What people differ in is a point in a small space, the latent, with a Gaussian prior that depends on the image. The
    point joins the features of every pixel, and layers that see one pixel at a time turn both into class logits: one
    point is one coherent drawing. To learn, a second network is shown a drawing and says where its point may lie.

    Parameters
    ----------
    in_channels, classes : of the images, and of the labels
    dims : 2 or 3 spatial axes
    latent : length of the latent
    draws : how many points of the prior the mean prediction takes in. They lie evenly, and are kept with the weights
    network : your own, from images to class logits (batch, classes, *spatial), which then serve as features; None = a
        U-Net
    plan : the stages of that U-Net; None = those for images of 64 pixels along each axis

    Examples
    --------
    >>> model = ProbabilisticUNet(in_channels=1, classes=2).eval()
    >>> images = torch.rand(3, 1, 20, 20)
    >>> model(images).exp().shape  # probabilities, all drawings together
    torch.Size([3, 2, 20, 20])
    >>> model.drawings(images, noise=torch.randn(5, 6)).shape  # five drawings of each image
    torch.Size([5, 3, 2, 20, 20])

    One step of training, with two raters' masks of each image:

    >>> labels = (images > torch.tensor([0.4, 0.6]).view(2, 1, 1)).to(torch.uint8)
    >>> loss, bound = model.train().loss(images, labels)
    >>> loss.backward()
    """

    noise: Tensor

    def __init__(
        self,
        in_channels: int,
        classes: int,
        dims: int = 2,
        latent: int = 6,
        draws: int = 16,
        network: nn.Module | None = None,
        plan: NetworkPlan | None = None,
    ) -> None:
        super().__init__()
        self.classes = classes
        self.prior = GaussianEncoder(in_channels, latent, dims)
        self.posterior = GaussianEncoder(in_channels + classes, latent, dims)
        if network is None:
            self.features: nn.Module = nn.Sequential(unet(in_channels, FEATURES, dims, plan), nn.LeakyReLU())
        else:
            self.features = network
        # A linear map of features and latent side by side is the sum of a map of each: features go through it once,
        # however many points follow.
        self.from_features = nn.Conv1d(FEATURES if network is None else classes, FEATURES, kernel_size=1)
        self.from_latent = nn.Linear(latent, FEATURES, bias=False)
        self.head = nn.Sequential(
            nn.LeakyReLU(),
            nn.Conv1d(FEATURES, FEATURES, kernel_size=1),
            nn.LeakyReLU(),
            nn.Conv1d(FEATURES, classes, 1),
        )
        self.register_buffer("noise", even_noise(draws, latent))

    def forward(self, images: Tensor) -> Tensor:
        """Log-probabilities (batch, classes, *spatial) of the label that somebody picked at random would give."""
        return reduce(torch.logaddexp, self._log_drawings(images, self.noise)) - math.log(len(self.noise))

    def drawings(self, images: Tensor, noise: Tensor) -> Tensor:
        """What people might draw: probabilities (n, batch, classes, *spatial); the likeliest labels are a drawing.

        ``noise`` (n, latent) holds standard normal numbers: each row is a point of the prior of every image.
        """
        return torch.stack([log_drawing.exp() for log_drawing in self._log_drawings(images, noise)])

    def loss(self, images: Tensor, labels: Tensor, beta: float = 1.0) -> tuple[Tensor, Tensor]:
        """The loss to minimise, and the negative evidence lower bound, each per label given.

        For every drawing given, a point is drawn from its posterior. The loss is the negative log-likelihood of the
        drawing made from that point, plus one minus its Dice, without which small structures are learnt late or never,
        plus ``beta`` times the divergence of the posterior from the prior. The bound leaves the Dice out, with a beta
        of 1: on average it is never below the negative log-likelihood of the drawings.

        Parameters
        ----------
        images : (batch, channels, *spatial)
        labels : (batch, raters, *spatial) uint8, 255 = not labelled
        """
        item, rater = (labels != MISSING_PIXEL).flatten(2).any(dim=2).nonzero(as_tuple=True)
        drawn = labels[item, rater]
        posterior = self.posterior(torch.cat([images[item], one_hot(drawn, self.classes)], dim=1))
        prior = self.prior(images)
        log_drawn = self._log_drawing(self._joint(images)[item], posterior.rsample())
        word = IdentityConfusion(1, self.classes)
        negative, _ = noisy_label_loss(log_drawn, word, one_pixel_axis(drawn, 1)[:, None])
        divergence = kl_divergence(posterior, _normal(prior.mean[item], prior.stddev[item])).sum()
        divergence = divergence / (drawn != MISSING_PIXEL).sum().clamp_min(1)
        overlap = dice_loss(log_drawn, one_pixel_axis(drawn, 1))
        return negative + overlap + beta * divergence, (negative + divergence).detach()

    def _log_drawings(self, images: Tensor, noise: Tensor) -> Iterator[Tensor]:
        """Log-probabilities (batch, classes, *spatial) for one row of noise after the other."""
        prior, joint = self.prior(images), self._joint(images)
        for row in noise:
            log_drawing = self._log_drawing(joint, prior.mean + prior.stddev * row)
            yield log_drawing.view(len(images), self.classes, *images.shape[2:])

    def _joint(self, images: Tensor) -> Tensor:
        """What the features contribute where they meet the latent: (batch, FEATURES, pixels)."""
        return self.from_features(one_pixel_axis(self.features(images), 2))

    def _log_drawing(self, joint: Tensor, latent: Tensor) -> Tensor:
        """Log-probabilities (batch, classes, pixels) of a drawing from each item's point (batch, latent)."""
        return self.head(joint + self.from_latent(latent)[:, :, None]).log_softmax(dim=1)


class GaussianEncoder(nn.Module):
    """From images, and what is laid over them, to a Gaussian (batch, latent) with independent axes.

    It starts near the standard normal.

    Examples
    --------
    >>> GaussianEncoder(in_channels=1, latent=6)(torch.zeros(2, 1, 9, 10)).mean.shape
    torch.Size([2, 6])
    """

    def __init__(self, in_channels: int, latent: int, dims: int = 2, width: int = 16, depth: int = 3) -> None:
        super().__init__()
        channels = [in_channels, *[width * 2**level for level in range(depth)]]
        # Normalised item by item: a batch of very few drawings, or of one, must do.
        norm = ("group", {"num_groups": 1})
        self.layers = nn.Sequential(
            *[Convolution(dims, *pair, strides=2, norm=norm, act="relu") for pair in pairwise(channels)]
        )
        self.head = nn.Linear(channels[-1], 2 * latent)
        nn.init.normal_(self.head.weight, std=0.01)
        nn.init.zeros_(self.head.bias)

    def forward(self, images: Tensor) -> Normal:
        mean, spread = self.head(self.layers(images).flatten(2).mean(dim=2)).chunk(2, dim=1)
        return _normal(mean, F.softplus(spread + math.log(math.e - 1)) + MIN_DEVIATION)


def _normal(mean: Tensor, deviation: Tensor) -> Normal:
    # Unchecked: numbers that are not finite are found in the loss, where the cases can be named.
    return Normal(mean, deviation, validate_args=False)
