"""MRNet: a network that is told how expert each rater is, and draws the mask that they would agree upon."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from annotruth.methods.base import Batch, DataSpec, MethodModel, register
from annotruth.methods.multi_rater.prism_model import HIGHEST, LOWEST, Confident, Prism, cropped, everywhere, trusted
from annotruth.nn import is_labelled
from annotruth.nn.prism import padded, said, shares

LEAST_VARIANCE = 1e-8
"""Between raters. Where all are thought to draw the same, a root has no slope."""


class Expertness(nn.Module):
    """The truth model: encoder and decoder with the raters' expertness in a ConvLSTM, masks of all raters, refinement.

    What raters would draw is read from a first mask; where they differ, the mask is drawn anew.
    """

    def __init__(self, shape: DataSpec, network: nn.Module | None) -> None:
        super().__init__()
        convolution = nn.Conv2d if shape.dims == 2 else nn.Conv3d
        self.prism = Prism(shape, "convlstm", network)
        self.raters, self.classes = shape.raters, shape.classes
        self.each = convolution(shape.classes, shape.raters * shape.classes, kernel_size=3, padding=1)
        self.refine = convolution(2 * shape.classes, shape.classes, kernel_size=3, padding=1)

    def forward(self, images: Tensor, expertness: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities of the mask (batch, classes, *spatial) and of each rater's (batch, raters, classes, …)."""
        features = self.prism.features(images)
        maps = everywhere(expertness, images).expand(-1, -1, *padded(images, 0.0).shape[2:])
        first = self.prism.conp(features, maps)
        each = self.each(first).unflatten(1, (self.raters, self.classes)).log_softmax(dim=2)
        differ = (each.exp().var(dim=1, unbiased=False) + LEAST_VARIANCE).sqrt()
        last = first + self.refine(torch.cat([first.softmax(dim=1), differ], dim=1))
        return cropped(last.log_softmax(dim=1), images), cropped(each, images)


class ExpertnessModel(MethodModel):
    """Everybody is as expert as the others, unless it is said otherwise."""

    truth: Expertness

    def log_truth(self, images: Tensor, trust: Tensor | None = None) -> Tensor:
        return self.truth(images, trusted(trust, self.truth.raters, images))[0]


@register
@dataclass(frozen=True)
class MRNet(Confident):
    """Expertness is drawn at random in training, and the mask to learn is the raters' mean with it as weight.

    So the network can be told whom to trust, but does not find out by itself.
    """

    name = "mrnet"
    paper = "Ji et al. 2021"
    summary = "a network told how expert each rater is, by a ConvLSTM"
    tasks = ("masks",)

    def build(self, shape: DataSpec, network: nn.Module | None = None) -> MethodModel:
        return ExpertnessModel(Expertness(shape, network), self.annotator_model(shape))

    def loss(self, parts: MethodModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        assert isinstance(parts, ExpertnessModel)
        given = said(batch.labels, parts.truth.classes)
        expertness = batch.images.new_ones(batch.labels.shape[:2])
        if parts.training:
            expertness = LOWEST + (HIGHEST - LOWEST) * torch.rand_like(expertness)
            expertness = expertness / expertness.mean(dim=1, keepdim=True)
        log_truth, log_each = parts.truth(batch.images, expertness)
        target = shares(given, everywhere(expertness, batch.images).expand(batch.labels.shape))
        counted = is_labelled(batch.labels, given.shape[2]).any(dim=1)
        of_mask = -((target * log_truth).sum(dim=1) * counted).sum() / counted.sum().clamp_min(1)
        of_raters = -(given * log_each).sum() / given.sum().clamp_min(1)
        return of_mask + of_raters, of_mask.detach()
