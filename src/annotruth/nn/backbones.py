"""Networks from images of any size to class logits at every pixel."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch.nn.functional as F
from monai.networks.nets import UNet
from torch import Tensor, nn

MIN_STRIDES = 2
"""An axis is at least so many strides long, so that the coarsest resolution has more than the one value that batch norm
refuses."""


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
        """The smallest length of an axis that is not padded for being too short."""
        return MIN_STRIDES * self.stride

    def forward(self, images: Tensor) -> Tensor:
        size, padded = images.shape[2:], pad_end(images, whole_strides(images.shape[2:], self.stride))
        output = self.network(padded)
        return output if padded is images else output[(..., *[slice(length) for length in size])]


def whole_strides(size: Sequence[int], stride: int) -> list[int]:
    """The smallest size no smaller than this whose lengths are multiples of the stride, two at least.

    Examples
    --------
    >>> whole_strides((5, 12, 13), stride=4)
    [8, 12, 16]
    """
    return [max(-(-length // stride), MIN_STRIDES) * stride for length in size]


def pad_end(values: Tensor, size: Sequence[int], fill: float = 0.0) -> Tensor:
    """Values (..., *spatial), filled up at the far ends of their last axes to this size; themselves if they have it.

    Examples
    --------
    >>> import torch
    >>> pad_end(torch.ones(2, 1), (2, 3), fill=255)
    tensor([[  1., 255., 255.],
            [  1., 255., 255.]])
    """
    missing = [wanted - has for wanted, has in zip(size, values.shape[values.ndim - len(size) :])]
    if not any(missing):
        return values
    # F.pad counts from the last axis backwards, two numbers an axis.
    return F.pad(values, [amount for length in reversed(missing) for amount in (0, length)], value=fill)
