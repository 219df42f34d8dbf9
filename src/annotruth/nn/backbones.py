"""Networks from images to class scores."""

from __future__ import annotations

from itertools import pairwise

import torch.nn.functional as F
from monai.networks.nets import UNet
from torch import Tensor, nn


def unet(in_channels: int, out_channels: int, dims: int = 2, width: int = 16, depth: int = 3) -> nn.Module:
    """A small residual U-Net for 2D or 3D images, of any size.

    Parameters
    ----------
    dims : 2 or 3 spatial axes
    width : channels at full resolution, doubled at each of the ``depth`` resolutions

    Examples
    --------
    >>> import torch
    >>> unet(in_channels=1, out_channels=4)(torch.zeros(2, 1, 13, 30)).shape
    torch.Size([2, 4, 13, 30])
    """
    channels = [width * 2**level for level in range(depth)]
    network = UNet(
        spatial_dims=dims,
        in_channels=in_channels,
        out_channels=out_channels,
        channels=channels,
        strides=[2 for _ in pairwise(channels)],
        num_res_units=1,
        norm="batch",
    )
    return AnySize(network, stride=2 ** (depth - 1))


class AnySize(nn.Module):
    """Pads images to a multiple of the network's stride and crops its output back.

    Examples
    --------
    >>> import torch
    >>> halved = nn.Sequential(nn.AvgPool2d(2), nn.Upsample(scale_factor=2))
    >>> AnySize(halved, stride=2)(torch.zeros(1, 1, 5, 7)).shape
    torch.Size([1, 1, 5, 7])
    """

    def __init__(self, network: nn.Module, stride: int) -> None:
        super().__init__()
        self.network = network
        self.stride = stride

    @property
    def least(self) -> int:
        """The smallest length of an axis that is not padded for being too short.

        Two steps, so that the coarsest resolution has more than the one value that batch norm refuses.
        """
        return 2 * self.stride

    def forward(self, images: Tensor) -> Tensor:
        size = images.shape[2:]
        missing = [max(-length % self.stride, self.least - length) for length in size]
        if not any(missing):
            return self.network(images)
        # F.pad counts from the last axis backwards, two numbers an axis.
        padding = [amount for length in reversed(missing) for amount in (0, length)]
        output = self.network(F.pad(images, padding))
        return output[(..., *[slice(length) for length in size])]
