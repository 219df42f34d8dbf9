"""Annotator models whose errors come together: a drawing is made in one mood."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from annotruth.nn.annotators.base import AnnotatorModel
from annotruth.nn.annotators.drawn import DrawingAnnotators
from annotruth.nn.annotators.pixel import PixelHeads
from annotruth.nn.annotators.surroundings import WIDTH, Surrounded
from annotruth.nn.confusion import CorrelatedConfusion, one_pixel_axis
from annotruth.nn.plan import NetworkPlan

FIRST_FACTOR = 0.3
"""By how much scores move with a standard normal number before anything was learnt: little, but not alike."""


class CorrelatedHeads(AnnotatorModel):
    """Matrices per rater and pixel that move together, read from features (batch, in_channels, *spatial).

    Parameters
    ----------
    rank : in how many ways the errors of a drawing may come together
    draws : how many moods a mean is taken over. They are drawn anew for each rater and image while a model is trained;
        else they are those that are kept with the weights

    Examples
    --------
    >>> CorrelatedHeads(in_channels=16, raters=3, classes=2)(torch.zeros(2, 16, 9, 10)).dense().shape
    torch.Size([2, 3, 2, 2, 9, 10])
    """

    points: Tensor

    def __init__(self, in_channels: int, raters: int, classes: int, rank: int = 4, draws: int = 8) -> None:
        super().__init__()
        self.raters, self.classes, self.rank = raters, classes, rank
        self.mean = PixelHeads(in_channels, raters, classes)
        self.factors = nn.Conv1d(in_channels, raters * rank * classes**2, kernel_size=1)
        nn.init.normal_(self.factors.weight, std=0.005)
        self.factors.bias = nn.Parameter(FIRST_FACTOR * torch.randn(raters * rank * classes**2))
        self.register_buffer("points", torch.randn(draws, 1, 1, rank))

    def forward(self, images: Tensor, raters: Tensor | None = None) -> CorrelatedConfusion:
        """Matrices of all raters, or of some (their positions), from features in the place of images."""
        flat = one_pixel_axis(images, 2)
        scores = self.mean.linear(flat).view(len(images), self.raters, self.classes, self.classes, *images.shape[2:])
        factors = self.factors(flat).view(len(images), self.raters, self.rank, *scores.shape[2:])
        if raters is not None:
            scores, factors = scores[:, raters], factors[:, raters]
        points = self.points
        if self.training:
            points = torch.randn(len(points), *scores.shape[:2], self.rank, device=images.device, dtype=scores.dtype)
        return CorrelatedConfusion(scores, factors, points)


class CorrelatedAnnotators(DrawingAnnotators):
    """As :class:`DrawingAnnotators`, with errors that come together.

    Examples
    --------
    >>> CorrelatedAnnotators(in_channels=1, raters=3, classes=2)(torch.zeros(2, 1, 9, 10)).dense().shape
    torch.Size([2, 3, 2, 2, 9, 10])
    """

    def __init__(
        self, in_channels: int, raters: int, classes: int, dims: int = 2, plan: NetworkPlan | None = None,
        rank: int = 4, draws: int = 8,
    ) -> None:  # fmt: skip
        super().__init__(in_channels, raters, classes, dims, plan=plan)
        features = self.drawings.in_channels
        self.errors = Surrounded(features, CorrelatedHeads(features + WIDTH, raters, classes, rank, draws), dims)
