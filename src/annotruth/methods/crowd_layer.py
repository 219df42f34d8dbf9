"""A crowd layer: every rater's scores are a linear map of the network's output, free and unnormalised."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from annotruth.methods.base import Batch, Method, Parts, Shape, register
from annotruth.nn import Confusion, GlobalConfusion, class_index, is_given
from annotruth.nn.blocks import one_pixel_axis
from annotruth.nn.rater_table import rater_rows


class CrowdLayer(nn.Module):
    """A linear map per rater, (raters, true, observed), the identity at first. Its softmaxed rows stand as matrices."""

    def __init__(self, raters: int, classes: int) -> None:
        super().__init__()
        self.maps = nn.Parameter(torch.eye(classes).repeat(raters, 1, 1))

    def forward(self, images: Tensor, raters: Tensor | None = None) -> Confusion:
        return GlobalConfusion(rater_rows(self.maps, raters).softmax(dim=2))

    def log_labels(self, truth: Tensor, raters: Tensor | None = None) -> Tensor:
        """Log-probabilities (batch, raters, observed, pixels) of labels, for truth (batch, classes, pixels)."""
        return torch.einsum("bis,rij->brjs", truth, rater_rows(self.maps, raters)).log_softmax(dim=2)


@register
@dataclass(frozen=True)
class CrowdLayerMethod(Method):
    """The network's probabilities go through each rater's own linear map, and a softmax, to that rater's labels."""

    name = "crowd-layer"
    paper = "Rodrigues and Pereira 2018"
    summary = "a free linear map per rater behind the network"
    learns_annotators = True

    def annotator_model(self, shape: Shape) -> nn.Module:
        return CrowdLayer(shape.raters, shape.classes)

    def loss(self, parts: Parts, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        assert isinstance(parts.annotators, CrowdLayer)
        truth = one_pixel_axis(parts.log_truth(batch.images).exp(), 2)
        labels = one_pixel_axis(batch.labels, 2)
        said = parts.annotators.log_labels(truth, batch.raters)
        observed = class_index(labels, truth.shape[1]).unsqueeze(2)
        given = is_given(labels, truth.shape[1])
        loss = -(said.gather(2, observed).squeeze(2) * given).sum() / given.sum().clamp_min(1)
        return loss, loss.detach()
