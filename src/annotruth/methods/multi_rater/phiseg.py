"""PHiSeg: what raters may draw is decided from coarse to fine, by latents at several resolutions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import torch
import torch.nn.functional as F
from monai.networks.blocks import Convolution
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence

from annotruth.methods.base import HEAD_START, Batch, DataSpec, Method, MethodModel
from annotruth.methods.options import check_at_least, check_not_negative
from annotruth.methods.protocols import Samples
from annotruth.methods.registry import register
from annotruth.nn import NetworkPlan, class_index, is_labelled, unet
from annotruth.nn.labels import one_hot
from annotruth.nn.noise import even_noise

FEATURES = 16
"""Channels of the U-Net's last features, and of the layers that turn latents into a drawing."""
MAX_WIDTH = 64
"""Channels of the networks of prior and posterior at most; they begin with as many as features have."""
MIN_DEVIATION = 1e-3
"""Floor under the latents' standard deviation, so that no divergence is infinite."""


class LatentPath(nn.Module):
    """From images, and what is laid over them, to a Gaussian at every level: the prior's network, or the posterior's.

    Level 0 is one point for the whole picture; the next is at the plan's coarsest stage, and each further one stage
    finer. Every Gaussian but the first depends on the point that was drawn above it.
    """

    def __init__(self, in_channels: int, latent: int, plan: NetworkPlan, levels: int) -> None:
        super().__init__()
        self.levels = levels
        # Normalised item by item: a batch of very few drawings, or of one, must do.
        norm = ("group", {"num_groups": 1})
        widths = [min(FEATURES * 2**stage, MAX_WIDTH) for stage in range(len(plan.widths))]
        self.stages = nn.ModuleList(
            Convolution(plan.dims, before, width, strides=stride, kernel_size=kernel, norm=norm, act="relu")
            for before, width, stride, kernel in zip((in_channels, *widths), widths, plan.strides, plan.kernels)
        )
        self.below = nn.ModuleList(
            Convolution(plan.dims, widths[-level] + latent, FEATURES, kernel_size=3, norm=norm, act="relu")
            for level in range(1, levels)
        )
        given = (widths[-1], *[FEATURES] * (levels - 1))
        self.heads = nn.ModuleList(pixelwise(plan.dims, channels, 2 * latent) for channels in given)
        for weight in self.heads.parameters():  # near the standard normal at first
            nn.init.normal_(weight, std=0.01)

    def forward(self, images: Tensor) -> list[Tensor]:
        """Features (batch, channels, *spatial) for every level, the coarsest first."""
        features = []
        for stage in self.stages:
            images = stage(images)
            features.append(images)
        whole = images.mean(dim=tuple(range(2, images.ndim)), keepdim=True)
        return [whole, *reversed(features)][: self.levels]

    def gaussian(self, level: int, features: Sequence[Tensor], above: Tensor | None) -> Normal:
        """Where a level's point may lie, (batch, latent, *spatial), given that of the level above."""
        given = features[level]
        if above is not None:
            given = self.below[level - 1](torch.cat([given, resized(above, given.shape[2:])], dim=1))
        mean, spread = self.heads[level](given).chunk(2, dim=1)
        deviation = F.softplus(spread + math.log(math.e - 1)) + MIN_DEVIATION
        # Unchecked: numbers that are not finite are found in the loss, where the cases can be named.
        return Normal(mean, deviation, validate_args=False)


class LatentHierarchy(nn.Module):
    """The truth model: features of the image, prior and posterior, and layers that turn points into a drawing."""

    def __init__(self, spec: DataSpec, latent: int, levels: int, draws: int, network: nn.Module | None) -> None:
        super().__init__()
        plan, dims = spec.plan, spec.dims
        levels = min(levels, len(plan.widths))  # none at full resolution, where chance would be grain
        self.classes, self.latent, self.levels, self.draws = spec.classes, latent, levels, draws
        self.features: nn.Module = network if network is not None else nn.Sequential(
            unet(spec.channels, FEATURES, dims, spec.network), nn.LeakyReLU()
        )  # fmt: skip
        self.prior = LatentPath(spec.channels, latent, plan, levels)
        self.posterior = LatentPath(spec.channels + spec.classes, latent, plan, levels)
        # No norms here: they would take away what a point says of the whole picture.
        self.read = nn.ModuleList(pixelwise(dims, latent, FEATURES) for _ in range(levels))
        self.merge = nn.ModuleList(
            Convolution(dims, FEATURES, FEATURES, kernel_size=3, norm=None, act="leakyrelu") for _ in range(levels - 1)
        )
        self.coarse = nn.ModuleList(pixelwise(dims, FEATURES, spec.classes) for _ in range(levels - 1))
        self.from_features = pixelwise(dims, spec.classes if network is not None else FEATURES, FEATURES)
        self.from_latent = pixelwise(dims, FEATURES, FEATURES)
        self.head = nn.Sequential(
            nn.LeakyReLU(), pixelwise(dims, FEATURES, FEATURES), nn.LeakyReLU(), pixelwise(dims, FEATURES, spec.classes)
        )

    def forward(self, images: Tensor) -> Tensor:
        """Log-probabilities (batch, classes, *spatial) of the label that somebody picked at random would give.

        Chance is always the same, so that one image has one prediction; that of whole pictures lies evenly.
        """
        whole = even_noise(self.draws, self.latent)
        drawn = self.log_drawings(images, self.draws, torch.Generator().manual_seed(0), whole)
        return reduce(torch.logaddexp, drawn) - math.log(self.draws)

    def log_drawings(
        self, images: Tensor, n: int, generator: torch.Generator, whole: Tensor | None = None
    ) -> Iterator[Tensor]:
        """Log-probabilities (batch, classes, *spatial) of n drawings, one after the other.

        Chance is the same for every image, so that windows of one image fit together. ``whole`` (n, latent) takes its
        place at the first level, that of whole pictures.
        """
        asked, joint = self.prior(images), self.from_features(self.features(images))
        sizes = [maps.shape[2:] for maps in asked]
        noise = [torch.randn(n, self.latent, *size, generator=generator).to(images) for size in sizes]
        if whole is not None:
            noise[0] = whole.to(images).view_as(noise[0])
        for number in range(n):
            points: list[Tensor] = []
            for level in range(self.levels):
                prior = self.prior.gaussian(level, asked, points[-1] if points else None)
                points.append(prior.mean + prior.stddev * noise[level][number])
            yield self.logits(joint, points)[-1].log_softmax(dim=1)

    def logits(self, joint: Tensor, points: Sequence[Tensor]) -> list[Tensor]:
        """Class logits (batch, classes, *spatial) after each level, the coarsest first; the last are the drawing's.

        Every level corrects the one above it, and the last one sees the image's features besides.
        """
        size, state, drawn = joint.shape[2:], self.read[0](points[0]), [joint.new_zeros(())]
        for level in range(1, self.levels):
            drawn.append(drawn[-1] + resized(self.coarse[level - 1](state), size))
            read = self.read[level](points[level])
            state = self.merge[level - 1](read + resized(state, read.shape[2:]))
        return [*drawn[1:], drawn[-1] + self.head(joint + resized(self.from_latent(state), size))]

    def loss(self, images: Tensor, labels: Tensor, beta: float) -> tuple[Tensor, Tensor]:
        """The loss to minimise, and the negative evidence lower bound, each per label given.

        Points are drawn from the posterior of every drawing (batch, raters, *spatial), and the prior is asked at each
        level given the posterior's point above it. The logits after each level are to explain the drawing, the last
        ones as the bound has it.
        """
        item, rater = is_labelled(labels, self.classes).flatten(2).any(dim=2).nonzero(as_tuple=True)
        drawn = labels[item, rater]
        given = is_labelled(drawn, self.classes)
        count = given.sum().clamp_min(1)
        shown = self.posterior(torch.cat([images[item], one_hot(drawn, self.classes)], dim=1))
        asked = [maps[item] for maps in self.prior(images)]
        points: list[Tensor] = []
        divergence = images.new_zeros(())
        for level in range(self.levels):
            above = points[-1] if points else None
            posterior, prior = (path.gaussian(level, maps, above) for path, maps in (
                (self.posterior, shown), (self.prior, asked)
            ))  # fmt: skip
            divergence = divergence + kl_divergence(posterior, prior).sum() / count
            points.append(posterior.rsample())
        logits = self.logits(self.from_features(self.features(images))[item], points)
        observed = class_index(drawn, self.classes)[:, None]
        said = [one.log_softmax(dim=1).gather(1, observed)[:, 0] for one in logits]
        negative = torch.stack([-(one * given).sum() / count for one in said])
        return negative.sum() + beta * divergence, (negative[-1] + divergence).detach()


def pixelwise(dims: int, channels: int, out: int) -> nn.Conv2d | nn.Conv3d:
    """A linear map of every pixel's channels."""
    return (nn.Conv2d if dims == 2 else nn.Conv3d)(channels, out, kernel_size=1)


def resized(maps: Tensor, size: Sequence[int]) -> Tensor:
    """Maps (batch, channels, *spatial) at another resolution, interpolated."""
    return F.interpolate(maps, tuple(size), mode="bilinear" if maps.ndim == 4 else "trilinear")


class PHiSegModel(MethodModel):
    """A hierarchy of latents, and raters who are not told apart."""

    truth: LatentHierarchy

    def log_truth(self, images: Tensor) -> Tensor:
        return self.truth(images)


@register
@dataclass(frozen=True)
class PHiSeg(Samples, Method[PHiSegModel]):
    """Every drawing comes about by chance: that of the whole picture first, then that of ever smaller parts.

    Simplified: the paper has five levels, the coarsest of 2×2 points, and its drawings see the image through the
    latents alone. Here the coarsest level is one point, and the features of a U-Net (or of your own network) join the
    finest one. Each step learns from all drawings of an image, not from one picked at random.

    In this small form its drawings are nearer to the raters' than one mask for all is, but on digits they were no
    nearer than those of prob-unet, which is cheaper.

    Options
    -------
    levels : at how many resolutions there are latents, the whole picture among them
    latent : how many hidden numbers there are at each point of a level
    beta : how much the divergence of the posterior from the prior counts; 1 is the evidence lower bound
    samples : how many drawings the prediction is the mean of
    """

    name = "phiseg"
    paper = "Baumgartner et al. 2019"
    summary = "latents at several resolutions: a distribution of drawings from coarse to fine, averaged"
    tasks = ("masks",)
    head_start = HEAD_START

    levels: int = 3
    latent: int = 2
    beta: float = 1.0
    samples: int = 16

    def __post_init__(self) -> None:
        check_at_least(2, levels=self.levels)
        check_at_least(1, latent=self.latent, samples=self.samples)
        check_not_negative(beta=self.beta)

    def build(self, spec: DataSpec, network: nn.Module | None = None) -> PHiSegModel:
        truth = LatentHierarchy(spec, self.latent, self.levels, self.samples, network)
        return PHiSegModel(truth, self.annotator_model(spec))

    def loss(self, model: PHiSegModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        return model.truth.loss(batch.images, batch.labels, self.beta)

    def sample(self, model: PHiSegModel, images: Tensor, n: int, generator: torch.Generator, spec: DataSpec) -> Tensor:
        return torch.stack([drawing.exp() for drawing in model.truth.log_drawings(images, n, generator)])
