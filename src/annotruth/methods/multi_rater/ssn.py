"""Stochastic segmentation networks: what raters may draw is a Gaussian of logits, correlated over the picture."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from annotruth.methods.base import Batch, DataSpec, Method, MethodModel
from annotruth.methods.options import check_at_least
from annotruth.methods.protocols import Samples
from annotruth.methods.registry import register
from annotruth.nn import StochasticUNet


class SSNModel(MethodModel):
    """A stochastic segmentation network, and raters who are not told apart."""

    truth: StochasticUNet


@register
@dataclass(frozen=True)
class SSN(Samples, Method[SSNModel]):
    """Pixels are drawn together: every drawing is a sample of one Gaussian over the logits of all pixels.

    Options
    -------
    rank : how many factors move the pixels of a drawing together
    samples : how many samples a drawing's likelihood is estimated from, and how many the prediction is the mean of
    """

    name = "ssn"
    paper = "Monteiro et al. 2020"
    summary = "a stochastic segmentation network: logits correlated over the picture, averaged"
    tasks = ("masks",)

    rank: int = 10
    samples: int = 20

    def __post_init__(self) -> None:
        check_at_least(1, rank=self.rank, samples=self.samples)

    def build(self, spec: DataSpec, network: nn.Module | None = None) -> SSNModel:
        truth = StochasticUNet(spec.channels, spec.classes, spec.dims, self.rank, self.samples, network, spec.network)
        return SSNModel(truth, self.annotator_model(spec))

    def loss(self, model: SSNModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        loss = model.truth.loss(batch.images, batch.labels)
        return loss, loss.detach()

    def sample(self, model: SSNModel, images: Tensor, n: int, generator: torch.Generator, spec: DataSpec) -> Tensor:
        return model.truth.drawings(images, n, generator)
