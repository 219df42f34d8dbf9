"""Annotator models: modules that give each rater's confusion matrices for a batch of images.

All start near the identity (everybody is right), because that start is what keeps classes from swapping.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotruth.nn.annotators.base import AnnotatorModel
from annotruth.nn.annotators.rater_table import rater_rows
from annotruth.nn.backbones import unet
from annotruth.nn.blocks import one_pixel_axis
from annotruth.nn.confusion import Confusion, GlobalConfusion, IdentityConfusion, PixelConfusion
from annotruth.nn.confusion.low_rank import GlobalLowRankConfusion, LowRankConfusion
from annotruth.nn.confusion.rows import log_row_probabilities

LEAST = 1e-3
"""No entry of a matrix to start from is smaller, or gradients could hardly raise it again."""


def identity_scores(classes: int) -> Tensor:
    """Scores (classes, classes) whose row-normalised softplus is close to the identity: 6·I − 5.

    Examples
    --------
    >>> identity_scores(2)
    tensor([[ 1., -5.],
            [-5.,  1.]])
    """
    return 6 * torch.eye(classes) - 5


def low_rank_scores(classes: int, rank: int) -> Tensor:
    """Scores (2, classes, rank) of a low-rank matrix close to the identity, whatever the rank.

    The rater is faithful 98 times in 100; else gives any label, as likely as another.
    """
    return torch.stack([torch.full((classes, rank), -4 - math.log(rank)), torch.zeros(classes, rank)])


class IdentityAnnotators(AnnotatorModel):
    """Raters who are always right: labels are taken at their word.

    Examples
    --------
    >>> IdentityAnnotators(raters=3, classes=2)(torch.zeros(1, 1, 8, 8)).dense().shape
    torch.Size([1, 3, 2, 2])
    """

    def __init__(self, raters: int, classes: int) -> None:
        super().__init__()
        self.raters, self.classes = raters, classes

    def forward(self, images: Tensor, raters: Tensor | None = None) -> Confusion:
        """Matrices of all raters, or of some (their positions)."""
        return IdentityConfusion(self.raters if raters is None else len(raters), self.classes, images.device)


class GlobalAnnotators(AnnotatorModel):
    """One learnt matrix per rater.

    Examples
    --------
    >>> GlobalAnnotators(raters=1, classes=2)(torch.zeros(1, 1, 8, 8)).dense()[0, 0].detach()
    tensor([[0.9949, 0.0051],
            [0.0051, 0.9949]])
    """

    def __init__(self, raters: int, classes: int) -> None:
        super().__init__()
        self.scores = nn.Parameter(identity_scores(classes).repeat(raters, 1, 1))

    def forward(self, images: Tensor, raters: Tensor | None = None) -> Confusion:
        """Matrices of all raters, or of some (their positions), whose gradients then are sparse."""
        log_matrices = log_row_probabilities(rater_rows(self.scores, raters), dim=2)
        return GlobalConfusion(log_matrices.exp(), log_matrices)

    @torch.no_grad()
    def set_matrices(self, matrices: Tensor) -> None:
        """Start from these matrices (raters, classes, classes) instead; entries of 0 are raised a little."""
        # The inverse of softplus; row sums stay as they are, so that learning goes on at the usual pace.
        weights = matrices.clamp_min(LEAST).to(self.scores) * F.softplus(torch.tensor(1.0))
        self.scores.copy_(weights.expm1().log())


class KnownAnnotators(AnnotatorModel):
    """One matrix per rater that gradients do not change: known beforehand, or counted now and then.

    Examples
    --------
    >>> KnownAnnotators(raters=3, classes=2)(torch.zeros(1, 1, 8, 8)).dense().shape
    torch.Size([1, 3, 2, 2])
    """

    matrices: Tensor

    def __init__(self, raters: int, classes: int) -> None:
        super().__init__()
        self.register_buffer("matrices", torch.eye(classes).repeat(raters, 1, 1))

    def forward(self, images: Tensor, raters: Tensor | None = None) -> Confusion:
        """Matrices of all raters, or of some (their positions)."""
        return GlobalConfusion(self.matrices if raters is None else self.matrices[raters])


class GlobalLowRankAnnotators(AnnotatorModel):
    """One learnt matrix per rater of low rank plus a share of the identity: for very many classes.

    Examples
    --------
    >>> GlobalLowRankAnnotators(raters=3, classes=1000)(torch.zeros(1, 8)).dense().shape
    torch.Size([1, 3, 1000, 1000])
    """

    def __init__(self, raters: int, classes: int, rank: int = 1) -> None:
        super().__init__()
        self.scores = nn.Parameter(low_rank_scores(classes, rank).repeat(raters, 1, 1, 1))

    def forward(self, images: Tensor, raters: Tensor | None = None) -> Confusion:
        """Matrices of all raters, or of some (their positions), whose gradients then are sparse."""
        return GlobalLowRankConfusion(rater_rows(self.scores, raters))


class PixelHeads(AnnotatorModel):
    """One matrix per rater and pixel, read from features (batch, in_channels, *spatial) that another network gives.

    Examples
    --------
    >>> PixelHeads(in_channels=16, raters=3, classes=2)(torch.zeros(2, 16, 9, 10)).dense().shape
    torch.Size([2, 3, 2, 2, 9, 10])
    """

    def __init__(self, in_channels: int, raters: int, classes: int) -> None:
        super().__init__()
        self.raters, self.classes = raters, classes
        self.linear = _small_head(in_channels, identity_scores(classes).flatten().repeat(raters))

    def forward(self, images: Tensor, raters: Tensor | None = None) -> Confusion:
        """Matrices of all raters, or of some (their positions), from features in the place of images."""
        scores = _of_raters(self.linear, self.raters, raters)(one_pixel_axis(images, 2))
        some = self.raters if raters is None else len(raters)
        return PixelConfusion(scores.view(len(images), some, self.classes, self.classes, *images.shape[2:]))


class PixelAnnotators(AnnotatorModel):
    """One matrix per rater and pixel, from the image, by a network of its own.

    Examples
    --------
    >>> PixelAnnotators(in_channels=1, raters=3, classes=2)(torch.zeros(2, 1, 9, 10)).dense().shape
    torch.Size([2, 3, 2, 2, 9, 10])
    """

    def __init__(self, in_channels: int, raters: int, classes: int, dims: int = 2, width: int = 8) -> None:
        super().__init__()
        features = max(2 * width, raters * classes)
        self.features = nn.Sequential(unet(in_channels, features, dims=dims, width=width), nn.PReLU())
        self.heads = PixelHeads(features, raters, classes)

    def forward(self, images: Tensor, raters: Tensor | None = None) -> Confusion:
        """Matrices of all raters, or of some (their positions)."""
        return self.heads(self.features(images), raters)


class LowRankAnnotators(AnnotatorModel):
    """As :class:`PixelAnnotators`, with matrices of low rank plus a share of the identity: for many classes.

    Examples
    --------
    >>> LowRankAnnotators(in_channels=1, raters=3, classes=20, rank=2)(torch.zeros(2, 1, 9, 10)).dense().shape
    torch.Size([2, 3, 20, 20, 9, 10])
    """

    def __init__(
        self, in_channels: int, raters: int, classes: int, dims: int = 2, width: int = 8, rank: int = 1
    ) -> None:
        super().__init__()
        self.raters, self.classes = raters, classes
        features = max(2 * width, raters * rank)
        self.features = nn.Sequential(unet(in_channels, features, dims=dims, width=width), nn.PReLU())
        self.head = _small_head(features, low_rank_scores(classes, rank).flatten().repeat(raters))

    def forward(self, images: Tensor, raters: Tensor | None = None) -> Confusion:
        """Matrices of all raters, or of some (their positions)."""
        head = _of_raters(self.head, self.raters, raters)
        some = self.raters if raters is None else len(raters)
        return LowRankConfusion(self.features(images), head, some, self.classes)


def _of_raters(head: nn.Conv1d, all_raters: int, raters: Tensor | None) -> Callable[[Tensor], Tensor]:
    """The linear map to the scores of all raters, which stand one rater after the other, or of some of them."""
    if raters is None:
        return head
    weight, bias = (
        None if part is None else part.unflatten(0, (all_raters, -1))[raters].flatten(0, 1)
        for part in (head.weight, head.bias)
    )
    return partial(F.conv1d, weight=weight, bias=bias)


def _small_head(in_channels: int, start: Tensor) -> nn.Conv1d:
    """The same linear map for every pixel, (batch, in_channels, pixels), that starts by giving ``start`` everywhere."""
    head = nn.Conv1d(in_channels, len(start), kernel_size=1)
    nn.init.normal_(head.weight, std=0.01)
    head.bias = nn.Parameter(start.clone())
    return head
