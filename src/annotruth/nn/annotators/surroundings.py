"""Matrices read from what stands around a pixel, not at it alone."""

from __future__ import annotations

import torch
from monai.networks.blocks.dynunet_block import UnetBasicBlock
from torch import Tensor

from annotruth.nn.annotators.base import AnnotatorModel
from annotruth.nn.backbones import start
from annotruth.nn.confusion import Confusion

WIDTH = 32
"""Features of surroundings, beside those that are given."""


class Surrounded(AnnotatorModel):
    """Heads that see features (batch, in_channels, *spatial) and others, made of those of the pixels around.

    Features that foretell each pixel's labels tell where a border runs; how far off it others draw theirs, and which
    errors come together, shows in the pixels around.

    Parameters
    ----------
    heads : made for ``in_channels + WIDTH`` features

    Examples
    --------
    >>> from annotruth.nn import PixelHeads
    >>> Surrounded(16, PixelHeads(16 + WIDTH, raters=3, classes=2))(torch.zeros(2, 16, 9, 10)).dense().shape
    torch.Size([2, 3, 2, 2, 9, 10])
    """

    def __init__(self, in_channels: int, heads: AnnotatorModel, dims: int = 2) -> None:
        super().__init__()
        self.around = UnetBasicBlock(
            dims, in_channels, WIDTH, kernel_size=3, stride=1, norm_name=("instance", {"affine": True})
        )
        start(self.around)
        self.heads = heads

    def forward(self, images: Tensor, raters: Tensor | None = None) -> Confusion:
        """Matrices of all raters, or of some (their positions), from features in the place of images."""
        return self.heads(torch.cat([images, self.around(images)], dim=1), raters)
