"""Annotator models of label tables whose matrices depend on the item: vectors of items and of raters meet in them."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from annotruth.nn.annotators.base import AnnotatorModel
from annotruth.nn.annotators.per_rater import rater_rows
from annotruth.nn.classifiers import small_cnn
from annotruth.nn.confusion import Confusion, GlobalConfusion

LENGTH = 16
"""Numbers in the vector of an item, and of a rater."""
FIRST_SKILL = 0.8
"""How often raters are taken to be right before anything was learnt."""


def item_embedding(channels: int, dims: int, length: int = LENGTH) -> nn.Module:
    """A small network from items to vectors: linear for features (dims 0), four convolutions for pictures.

    Examples
    --------
    >>> item_embedding(channels=3, dims=2)(torch.zeros(2, 3, 28, 28)).shape
    torch.Size([2, 16])
    """
    return small_cnn(channels, length, dims, widths=(8, 8, 16, 16), norm=False) if dims else nn.Linear(channels, length)


class EmbeddedAnnotators(AnnotatorModel):
    """A matrix per rater and item, read from the rater's vector, the item's, and their product.

    Examples
    --------
    >>> EmbeddedAnnotators(channels=4, raters=3, classes=2, dims=0)(torch.zeros(5, 4)).dense().shape
    torch.Size([5, 3, 2, 2])
    """

    def __init__(self, channels: int, raters: int, classes: int, dims: int) -> None:
        super().__init__()
        self.classes = classes
        self.items = item_embedding(channels, dims)
        self.raters = nn.Parameter(torch.randn(raters, LENGTH) / LENGTH**0.5)
        self.hidden = nn.Linear(3 * LENGTH, LENGTH)
        self.output = nn.Linear(LENGTH, classes * classes)
        if self.output.weight.device.type != "meta":
            self.output.weight.data.mul_(0.1)  # the first matrices are nearly those of the bias
            odds = FIRST_SKILL * max(classes - 1, 1) / (1 - FIRST_SKILL)
            self.output.bias.data.copy_(math.log(odds) * torch.eye(classes).flatten())

    def forward(self, images: Tensor, raters: Tensor | None = None) -> Confusion:
        """Matrices of all raters, or of some (their positions), for every item."""
        items, who = self.items(images)[:, None], rater_rows(self.raters, raters)[None]
        logs = self.log_matrices(items.expand(-1, who.shape[1], -1), who.expand(len(items), -1, -1))
        return GlobalConfusion(logs.exp(), logs)

    def log_matrices(self, items: Tensor, raters: Tensor) -> Tensor:
        """Logarithms (..., classes, classes) of the matrices for vectors (..., length) of items and of raters."""
        hidden = self.hidden(torch.cat([items, raters, items * raters], dim=-1))
        scores = self.output((hidden + raters).relu())
        return scores.unflatten(-1, (self.classes, self.classes)).log_softmax(dim=-1)
