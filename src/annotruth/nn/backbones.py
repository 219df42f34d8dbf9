"""Networks from images of any size to class logits at every pixel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch.nn.functional as F
from monai.networks.blocks.dynunet_block import UnetBasicBlock, UnetOutBlock, UnetResBlock, UnetUpBlock
from torch import Tensor, nn

from annotruth.nn.plan import NetworkPlan, least_lengths, plan_network
from annotruth.nn.precision import mixed_in_training

LEAKY_SLOPE = 0.01
DEFAULT_SIDE = 64
"""Side of the images that a network is planned for where no plan is given."""


def unet(
    in_channels: int, out_channels: int, dims: int = 2, plan: NetworkPlan | None = None, width: int | None = None
) -> nn.Module:
    """A U-Net for 2D or 3D images, of any size, whose first and last stages see the full resolution.

    Parameters
    ----------
    dims : 2 or 3 spatial axes
    plan : its stages, see :func:`annotruth.nn.plan_network`; None = those for images of 64 pixels along each axis
    width : channels at full resolution, others in proportion; None = as planned

    Examples
    --------
    >>> import torch
    >>> unet(in_channels=1, out_channels=4)(torch.zeros(2, 1, 13, 30)).shape
    torch.Size([2, 4, 13, 30])
    """
    plan = plan or plan_network((DEFAULT_SIDE,) * dims)
    plan = plan if width is None else plan.begun_with(width)
    return AnySize(UNet(in_channels, out_channels, plan), plan.stride)


class UNet(nn.Module):
    """Encoder and decoder; sides of images must be multiples of the plan's stride.

    Examples
    --------
    >>> import torch
    >>> UNet(in_channels=1, out_channels=2, plan=plan_network((16, 16)))(torch.zeros(3, 1, 16, 16)).shape
    torch.Size([3, 2, 16, 16])
    """

    def __init__(self, in_channels: int, out_channels: int, plan: NetworkPlan) -> None:
        super().__init__()
        self.encoder = UNetEncoder(in_channels, plan)
        self.decoder = UNetDecoder(out_channels, plan)

    @mixed_in_training
    def forward(self, images: Tensor) -> Tensor:
        return self.decoder(self.encoder(images))


class UNetEncoder(nn.Module):
    """Images (batch, channels, *spatial) to the features of every stage, those at full resolution first."""

    def __init__(self, in_channels: int, plan: NetworkPlan) -> None:
        super().__init__()
        block = UnetResBlock if plan.residual else UnetBasicBlock
        before = (in_channels, *plan.widths)
        self.stages = nn.ModuleList(
            block(plan.dims, channels, width, kernel_size=kernel, stride=stride, norm_name=norm(plan))
            for channels, width, kernel, stride in zip(before, plan.widths, plan.kernels, plan.strides)
        )
        start(self)

    @mixed_in_training
    def forward(self, images: Tensor) -> list[Tensor]:
        features = []
        for stage in self.stages:
            images = stage(images)
            features.append(images)
        return features


class UNetDecoder(nn.Module):
    """The features of every stage to class logits (batch, out_channels, *spatial).

    With deep supervision, the other stages but the two coarsest give logits, too; all are added up at full resolution.
    """

    def __init__(
        self, out_channels: int, plan: NetworkPlan, norm_name: tuple[str, dict[str, Any]] | None = None
    ) -> None:
        super().__init__()
        stages = range(len(plan.widths) - 1)
        self.steps = nn.ModuleList(
            UnetUpBlock(
                plan.dims, plan.widths[i + 1], plan.widths[i], kernel_size=plan.kernels[i], stride=1,
                upsample_kernel_size=plan.strides[i + 1], norm_name=norm_name or norm(plan),
            )
            for i in stages
        )  # fmt: skip
        coarse = stages[1:-1] if plan.deep_supervision else ()
        self.heads = nn.ModuleList(UnetOutBlock(plan.dims, plan.widths[i], out_channels) for i in (0, *coarse))
        self.interpolation = "bilinear" if plan.dims == 2 else "trilinear"
        start(self)

    def forward(self, features: list[Tensor]) -> Tensor:
        return self.logits(self.decode(features))

    @mixed_in_training
    def decode(self, features: list[Tensor], down_to: int = 0) -> list[Tensor]:
        """The features of every stage, those from a stage on decoded: that stage is the finest to be."""
        decoded = list(features)
        for stage in reversed(range(down_to, len(self.steps))):
            decoded[stage] = self.steps[stage](decoded[stage + 1], decoded[stage])
        return decoded

    @mixed_in_training
    def logits(self, decoded: list[Tensor]) -> Tensor:
        """Class logits from what every stage was decoded to."""
        finest, *coarse = [head(maps) for head, maps in zip(self.heads, decoded)]
        for logits in coarse:
            finest = finest + F.interpolate(logits, finest.shape[2:], mode=self.interpolation)
        return finest


def norm(plan: NetworkPlan) -> tuple[str, dict[str, Any]]:
    """The planned norm, with weights of its own, as MONAI's blocks want it."""
    return plan.norm, {"affine": True}


def start(network: nn.Module) -> None:
    """Let convolutions begin as suits leaky rectifiers (He et al. 2015)."""
    for layer in network.modules():
        if isinstance(layer, (nn.Conv2d, nn.Conv3d, nn.ConvTranspose2d, nn.ConvTranspose3d)):
            nn.init.kaiming_normal_(layer.weight, a=LEAKY_SLOPE)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


class AnySize(nn.Module):
    """Pads images to a multiple of the network's stride and crops its output back.

    Parameters
    ----------
    stride : one number, or one for each spatial axis

    Examples
    --------
    >>> import torch
    >>> halved = nn.Sequential(nn.AvgPool2d(2), nn.Upsample(scale_factor=2))
    >>> AnySize(halved, stride=2)(torch.zeros(1, 1, 5, 7)).shape
    torch.Size([1, 1, 5, 7])
    """

    def __init__(self, network: nn.Module, stride: int | Sequence[int]) -> None:
        super().__init__()
        self.network = network
        self.stride = stride

    def least(self, axes: int) -> tuple[int, ...]:
        """The smallest lengths of these many axes that are not padded for being too short."""
        return least_lengths(strides_of(self.stride, axes))

    def forward(self, images: Tensor) -> Tensor:
        padded = self.padded(images)
        output = self.network(padded)
        return output if padded is images else crop_end(output, images.shape[2:])

    def padded(self, images: Tensor) -> Tensor:
        """Images (batch, channels, *spatial) as the network gets them."""
        return pad_end(images, whole_strides(images.shape[2:], self.stride))


def strides_of(stride: int | Sequence[int], axes: int) -> tuple[int, ...]:
    """A stride for each axis, where one number may stand for all.

    Examples
    --------
    >>> strides_of(4, axes=2), strides_of((4, 2), axes=2)
    ((4, 4), (4, 2))
    """
    return (stride,) * axes if isinstance(stride, int) else tuple(stride)


def whole_strides(size: Sequence[int], stride: int | Sequence[int]) -> list[int]:
    """The smallest size no smaller than this whose lengths are multiples of the stride, two at least where it is not 1.

    Examples
    --------
    >>> whole_strides((5, 12, 13), stride=4)
    [8, 12, 16]
    >>> whole_strides((5, 12), stride=(4, 1))
    [8, 12]
    """
    steps = strides_of(stride, len(size))
    return [max(-(-length // step) * step, fewest) for length, step, fewest in zip(size, steps, least_lengths(steps))]


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


def crop_end(values: Tensor, size: Sequence[int]) -> Tensor:
    """Undo :func:`pad_end`: values (..., *spatial) without what lies beyond this size.

    Examples
    --------
    >>> import torch
    >>> crop_end(torch.rand(1, 4, 8, 8), (5, 8)).shape
    torch.Size([1, 4, 5, 8])
    """
    window = [slice(None)] * (values.ndim - len(size)) + [slice(length) for length in size]
    return values[tuple(window)]
