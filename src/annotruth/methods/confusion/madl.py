"""MaDL: a matrix per rater and item from vectors of both; raters who are alike share one vote."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import Gamma

from annotruth.methods.base import Batch, DataSpec, Method, MethodModel
from annotruth.methods.registry import register
from annotruth.nn import EmbeddedAnnotators, is_labelled

BANDWIDTH = (1.25, 0.25)
"""Shape and rate of the gamma distribution that the sharpness of likeness is expected from."""
LEAST_SHARPNESS = 1e-3


class LikenessAnnotators(EmbeddedAnnotators):
    """Matrices from vectors of raters and items, and how sharply vectors of raters must agree to be alike."""

    def __init__(self, channels: int, raters: int, classes: int, dims: int) -> None:
        super().__init__(channels, raters, classes, dims)
        shape, rate = BANDWIDTH
        self.sharpness = nn.Parameter(torch.tensor((shape - 1) / rate))

    def weights(self) -> Tensor:
        """One per rater, of mean 1: the fewer others are alike, the more it counts."""
        vectors = F.normalize(self.raters.detach(), dim=1)
        alike = torch.exp(self.sharpness.clamp_min(LEAST_SHARPNESS) * (vectors @ vectors.T - 1)).sum(dim=1)
        return len(alike) * (1 / alike) / (1 / alike).sum()


class LikenessModel(MethodModel):
    """A network beside a model of raters who may be alike."""

    annotators: LikenessAnnotators


@register
@dataclass(frozen=True)
class MaDL(Method[LikenessModel]):
    """Errors depend on rater and item; the labels of raters whose vectors are alike weigh less, each.

    The paper reads an item's vector from the network's features; here a small network of its own makes it, so that any
    network will do.
    """

    name = "madl"
    paper = "Herde et al. 2023"
    summary = "a matrix per rater and item; raters who are alike share their weight"
    tasks = ("labels",)
    model_class = LikenessModel
    learns_annotators = True
    annotator_rate = 0.1  # slower than the network, or matrices of items explain everything by themselves

    def annotator_model(self, spec: DataSpec) -> nn.Module:
        return LikenessAnnotators(spec.channels, spec.raters, spec.classes, spec.dims)

    def loss(self, model: LikenessModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        raters = model.annotators
        said, _ = model.rater_confusion(batch).likelihood(model.log_truth(batch.images), batch.labels)
        count = is_labelled(batch.labels, raters.classes).sum()
        if count == 0:
            return -said.sum(), -said.detach().sum()
        weights = raters.weights() if batch.raters is None else raters.weights()[batch.raters]
        expected = Gamma(*BANDWIDTH, validate_args=False).log_prob(raters.sharpness.clamp_min(LEAST_SHARPNESS))
        return -(weights * said).sum() / count - expected, -said.detach().sum() / count
