"""AGNet: a network on the majority vote whose coarse features are brought up along the edges of finer ones."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from monai.networks.blocks.dynunet_block import UnetBasicBlock, UnetOutBlock
from torch import Tensor, nn

from annotruth.methods.base import Batch, DataSpec, MethodModel
from annotruth.methods.registry import register
from annotruth.methods.two_stage.majority import OnVote
from annotruth.nn import AnySize, NetworkPlan, UNetEncoder, dice_loss, noisy_label_loss
from annotruth.nn.backbones import norm, start
from annotruth.nn.guided_filter import AttentionGuidedFilter


class GuidedUNet(nn.Module):
    """A U-Net's encoder that sees the image at every scale, and a decoder of attention guided filters.

    Sides of images must be multiples of the plan's stride.
    """

    def __init__(self, channels: int, classes: int, plan: NetworkPlan) -> None:
        super().__init__()
        dims = plan.dims
        convolution = nn.Conv2d if dims == 2 else nn.Conv3d
        self.interpolation = "bilinear" if dims == 2 else "trilinear"
        self.encoder = UNetEncoder(channels, plan)
        fine = list(zip(plan.widths, plan.widths[1:], plan.kernels))
        self.scales = nn.ModuleList(convolution(channels, width, kernel_size=3, padding=1) for width in plan.widths[1:])
        self.narrow = nn.ModuleList(convolution(below, width, kernel_size=1) for width, below, _ in fine)
        self.filters = nn.ModuleList(AttentionGuidedFilter(width, dims) for width, _, _ in fine)
        self.blocks = nn.ModuleList(
            UnetBasicBlock(dims, 2 * width, width, kernel_size=kernel, stride=1, norm_name=norm(plan))
            for width, _, kernel in fine
        )
        self.heads = nn.ModuleList(UnetOutBlock(dims, width, classes) for width, _, _ in fine)
        start(self.scales)
        start(self.blocks)

    def forward(self, images: Tensor) -> Tensor:
        """Class scores of all stages, those of the finest first: (batch, stages · classes, *spatial)."""
        features, maps = [self.encoder.stages[0](images)], []
        for stage, scale in zip(self.encoder.stages[1:], self.scales):
            coarser = stage(features[-1])
            features.append(coarser + scale(F.interpolate(images, coarser.shape[2:], mode="area")))
        decoded = features[-1]
        for guide, narrow, bring_up, block, head in reversed(
            list(zip(features, self.narrow, self.filters, self.blocks, self.heads))
        ):
            decoded = block(torch.cat([bring_up(narrow(decoded), guide), guide], dim=1))
            maps.append(F.interpolate(head(decoded), images.shape[2:], mode=self.interpolation))
        return torch.cat(maps[::-1], dim=1)


class Guided(nn.Module):
    """The truth model: images of any size, to which a network of the user's own adds its class scores."""

    def __init__(self, spec: DataSpec, network: nn.Module | None = None) -> None:
        super().__init__()
        self.network, self.classes = network, spec.classes
        channels = spec.channels + (spec.classes if network is not None else 0)
        self.unet = AnySize(GuidedUNet(channels, spec.classes, spec.plan), spec.plan.stride)

    def forward(self, images: Tensor) -> Tensor:
        """Class scores (batch, stages, classes, *spatial) of every stage of the decoder, the finest first."""
        if self.network is not None:
            images = torch.cat([images, self.network(images)], dim=1)
        return self.unet(images).unflatten(1, (-1, self.classes))


class GuidedModel(MethodModel):
    """The mean of the stages' class scores is the truth's."""

    truth: Guided

    def log_truth(self, images: Tensor) -> Tensor:
        return self.truth(images).mean(dim=1).log_softmax(dim=1)


@register
@dataclass(frozen=True)
class AGNet(OnVote[GuidedModel]):
    """Attention guided filters keep in coarse features what fine ones show of structure; every stage learns the vote.

    The encoder is the one that all methods share, and is given the image at every scale, as the paper's. In small
    trials, on digits and drawn shapes, it was no better than majority by more than chance.
    """

    name = "agnet"
    paper = "Zhang et al. 2019 (AGNet); baseline of Wu et al. 2022"
    summary = "a network on the majority vote with attention guided filters"
    tasks = ("masks",)

    def build(self, spec: DataSpec, network: nn.Module | None = None) -> GuidedModel:
        return GuidedModel(Guided(spec, network), self.annotator_model(spec))

    def loss(self, model: GuidedModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        scores = model.truth(batch.images)
        confusion = model.rater_confusion(batch)
        log_truth = scores.mean(dim=1).log_softmax(dim=1)
        loss, likelihood = noisy_label_loss(log_truth, confusion, batch.labels)
        loss = loss + dice_loss(log_truth, batch.labels[:, 0])
        sides = [noisy_label_loss(side.log_softmax(dim=1), confusion, batch.labels)[0] for side in scores.unbind(dim=1)]
        return loss + torch.stack(sides).mean(), likelihood
