"""Annotator models with one matrix per rater and pixel, from the image.

All start near the identity (everybody is right everywhere), because that start is what keeps classes from swapping.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch.nn.functional as F
from torch import Tensor, nn

from annotruth.nn.annotators.base import AnnotatorModel
from annotruth.nn.backbones import unet
from annotruth.nn.confusion import Confusion, LowRankConfusion, PixelConfusion, identity_scores, one_pixel_axis
from annotruth.nn.confusion.low_rank import low_rank_scores
from annotruth.nn.plan import NetworkPlan


class PixelHeads(AnnotatorModel):
    """One matrix per rater and pixel, read from features (batch, in_channels, *spatial) that another network gives.

    Examples
    --------
    >>> import torch
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
    >>> import torch
    >>> PixelAnnotators(in_channels=1, raters=3, classes=2)(torch.zeros(2, 1, 9, 10)).dense().shape
    torch.Size([2, 3, 2, 2, 9, 10])
    """

    def __init__(
        self,
        in_channels: int,
        raters: int,
        classes: int,
        dims: int = 2,
        width: int = 8,
        plan: NetworkPlan | None = None,
    ) -> None:
        super().__init__()
        features = max(2 * width, raters * classes)
        self.features = nn.Sequential(unet(in_channels, features, dims, plan, width), nn.PReLU())
        self.heads = PixelHeads(features, raters, classes)

    def forward(self, images: Tensor, raters: Tensor | None = None) -> Confusion:
        """Matrices of all raters, or of some (their positions)."""
        return self.heads(self.features(images), raters)


class LowRankHeads(AnnotatorModel):
    """As :class:`PixelHeads`, with matrices of low rank plus a share of the identity: for many classes.

    Examples
    --------
    >>> import torch
    >>> LowRankHeads(in_channels=16, raters=3, classes=20)(torch.zeros(2, 16, 9, 10)).dense().shape
    torch.Size([2, 3, 20, 20, 9, 10])
    """

    def __init__(self, in_channels: int, raters: int, classes: int, rank: int = 1) -> None:
        super().__init__()
        self.raters, self.classes = raters, classes
        self.linear = _small_head(in_channels, low_rank_scores(classes, rank).flatten().repeat(raters))

    def forward(self, images: Tensor, raters: Tensor | None = None) -> Confusion:
        """Matrices of all raters, or of some (their positions), from features in the place of images."""
        some = self.raters if raters is None else len(raters)
        return LowRankConfusion(images, _of_raters(self.linear, self.raters, raters), some, self.classes)


class LowRankAnnotators(AnnotatorModel):
    """As :class:`PixelAnnotators`, with matrices of low rank plus a share of the identity: for many classes.

    Examples
    --------
    >>> import torch
    >>> LowRankAnnotators(in_channels=1, raters=3, classes=20, rank=2)(torch.zeros(2, 1, 9, 10)).dense().shape
    torch.Size([2, 3, 20, 20, 9, 10])
    """

    def __init__(
        self,
        in_channels: int,
        raters: int,
        classes: int,
        dims: int = 2,
        width: int = 8,
        rank: int = 1,
        plan: NetworkPlan | None = None,
    ) -> None:
        super().__init__()
        self.raters, self.classes = raters, classes
        features = max(2 * width, raters * rank)
        self.features = nn.Sequential(unet(in_channels, features, dims, plan, width), nn.PReLU())
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
    nn.init.normal_(head.weight, std=0.005)
    head.bias = nn.Parameter(start.clone())
    return head
