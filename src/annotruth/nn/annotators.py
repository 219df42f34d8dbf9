"""Annotator models: modules that give each rater's confusion matrices for a batch of images.

All start near the identity (everybody is right), because that start is what keeps classes from swapping.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotruth.nn.backbones import convolution, unet
from annotruth.nn.confusion import Confusion, GlobalConfusion, IdentityConfusion, LowRankConfusion, PixelConfusion


def identity_scores(classes: int) -> Tensor:
    """Scores (classes, classes) whose row-normalised softplus is close to the identity: 6·I − 5."""
    return 6 * torch.eye(classes) - 5


class IdentityAnnotators(nn.Module):
    """Raters who are always right: labels are taken at their word."""

    def __init__(self, raters: int, classes: int) -> None:
        super().__init__()
        self.raters, self.classes = raters, classes

    def forward(self, images: Tensor) -> Confusion:
        return IdentityConfusion(self.raters, self.classes)


class GlobalAnnotators(nn.Module):
    """One learnt matrix per rater."""

    def __init__(self, raters: int, classes: int) -> None:
        super().__init__()
        self.scores = nn.Parameter(identity_scores(classes).repeat(raters, 1, 1))

    def forward(self, images: Tensor) -> Confusion:
        weights = F.softplus(self.scores)
        return GlobalConfusion(weights / weights.sum(dim=2, keepdim=True))


class PixelAnnotators(nn.Module):
    """One matrix per rater and pixel, from the image, by a network of its own."""

    def __init__(self, in_channels: int, raters: int, classes: int, dims: int = 2, width: int = 8) -> None:
        super().__init__()
        self.raters, self.classes = raters, classes
        features = max(2 * width, raters * classes)
        self.features = unet(in_channels, features, dims=dims, width=width)
        self.activation = nn.PReLU()
        self.head = _small_head(features, identity_scores(classes).flatten().repeat(raters), dims)

    def forward(self, images: Tensor) -> Confusion:
        scores = self.head(self.activation(self.features(images)))
        return PixelConfusion(scores.view(len(images), self.raters, self.classes, self.classes, *images.shape[2:]))


class LowRankAnnotators(nn.Module):
    """As :class:`PixelAnnotators`, with matrices of low rank plus a share of the identity: for many classes."""

    def __init__(
        self, in_channels: int, raters: int, classes: int, dims: int = 2, width: int = 8, rank: int = 1
    ) -> None:
        super().__init__()
        self.raters, self.classes, self.rank = raters, classes, rank
        features = max(2 * width, raters * rank)
        self.features = unet(in_channels, features, dims=dims, width=width)
        self.activation = nn.PReLU()
        # Thin factors start small and the identity's share large: near the identity, as the other models.
        start = torch.cat([torch.full((2 * classes * rank,), -3.0), torch.ones(1)])
        self.head = _small_head(features, start.repeat(raters), dims)

    def forward(self, images: Tensor) -> Confusion:
        size = images.shape[2:]
        positive = F.softplus(self.head(self.activation(self.features(images))))
        by_rater = positive.view(len(images), self.raters, -1, *size)
        left, right, identity = by_rater.split([self.classes * self.rank, self.classes * self.rank, 1], dim=2)
        factors = (len(images), self.raters, self.classes, self.rank, *size)
        return LowRankConfusion(left.reshape(factors), right.reshape(factors), identity.squeeze(2))


def _small_head(in_channels: int, start: Tensor, dims: int) -> nn.Module:
    """A 1×1 convolution with small weights whose bias gives the start everywhere."""
    head = convolution(dims)(in_channels, len(start), kernel_size=1)
    nn.init.normal_(head.weight, std=0.01)
    assert head.bias is not None
    with torch.no_grad():
        head.bias.copy_(start)
    return head
