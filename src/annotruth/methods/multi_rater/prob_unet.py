"""The Probabilistic U-Net: raters are not told apart, but what they may draw is learnt as a distribution."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from annotruth.methods.base import Batch, DataSpec, Method, MethodModel
from annotruth.methods.options import check_at_least, check_not_negative
from annotruth.methods.protocols import Samples
from annotruth.methods.registry import register
from annotruth.nn import ProbabilisticUNet


class ProbUNetModel(MethodModel):
    """A Probabilistic U-Net, and raters who are not told apart."""

    truth: ProbabilisticUNet


@register
@dataclass(frozen=True)
class ProbUNet(Samples, Method[ProbUNetModel]):
    """Every drawing is as good as another, and comes about by chance.

    Each step learns from all drawings of an image, not from one picked at random: the costly network runs once for all
    of them, and the held-out figure by which training stops is not a matter of who was picked.

    Options
    -------
    latent : how many hidden numbers tell drawings apart
    beta : how much the divergence of the posterior from the prior counts; 1 is the evidence lower bound
    samples : how many drawings the prediction is the mean of
    """

    name = "prob-unet"
    paper = "Kohl et al. 2018; baseline of Zhang et al. 2020"
    summary = "a Probabilistic U-Net: a distribution of drawings, averaged"
    tasks = ("masks",)

    latent: int = 6
    beta: float = 1.0
    samples: int = 16

    def __post_init__(self) -> None:
        check_at_least(1, latent=self.latent, samples=self.samples)
        check_not_negative(beta=self.beta)

    def build(self, spec: DataSpec, network: nn.Module | None = None) -> ProbUNetModel:
        truth = ProbabilisticUNet(
            spec.channels, spec.classes, spec.dims, self.latent, self.samples, network, spec.network
        )
        return ProbUNetModel(truth, self.annotator_model(spec))

    def loss(self, model: ProbUNetModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        return model.truth.loss(batch.images, batch.labels, self.beta)

    def sample(
        self, model: ProbUNetModel, images: Tensor, n: int, generator: torch.Generator, spec: DataSpec
    ) -> Tensor:
        noise = torch.randn(n, self.latent, generator=generator).to(images)
        return model.truth.drawings(images, noise)
