"""A crowd layer: every rater's scores are a linear map of the network's output, free and unnormalised."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from annotruth.methods.base import HEAD_START, Batch, DataSpec, Method, MethodModel
from annotruth.methods.registry import register
from annotruth.nn import Confusion, GlobalConfusion, is_labelled, one_pixel_axis, rater_rows


class CrowdLayer(nn.Module):
    """A linear map per rater, (raters, true, observed), the identity at first. Its softmaxed rows stand as matrices."""

    def __init__(self, raters: int, classes: int) -> None:
        super().__init__()
        self.maps = nn.Parameter(torch.eye(classes).repeat(raters, 1, 1))

    def forward(self, images: Tensor, raters: Tensor | None = None) -> Confusion:
        return GlobalConfusion(rater_rows(self.maps, raters).softmax(dim=2))

    def log_likelihood(self, truth: Tensor, labels: Tensor, raters: Tensor | None = None) -> Tensor:
        """Log-probabilities (given,) of the given ones of labels (batch, raters, pixels).

        Others are not looked at: of many raters few label an item. ``truth`` is (batch, classes, pixels).
        """
        item, rater, pixel = is_labelled(labels, truth.shape[1]).nonzero(as_tuple=True)
        scores = torch.einsum("ni,nij->nj", truth[item, :, pixel], rater_rows(self.maps, raters)[rater])
        return scores.log_softmax(dim=1).gather(1, labels[item, rater, pixel, None].long()).squeeze(1)


class CrowdLayerModel(MethodModel):
    """A network with a crowd layer behind it."""

    annotators: CrowdLayer


@register
@dataclass(frozen=True)
class CrowdLayerMethod(Method[CrowdLayerModel]):
    """The network's probabilities go through each rater's own linear map, and a softmax, to that rater's labels."""

    name = "crowd-layer"
    paper = "Rodrigues and Pereira 2018"
    summary = "a free linear map per rater behind the network"
    model_class = CrowdLayerModel
    learns_annotators = True
    head_start = HEAD_START

    def annotator_model(self, spec: DataSpec) -> nn.Module:
        return CrowdLayer(spec.raters, spec.classes)

    def loss(self, model: CrowdLayerModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        truth = one_pixel_axis(model.log_truth(batch.images).exp(), 2)
        said = model.annotators.log_likelihood(truth, one_pixel_axis(batch.labels, 2), batch.raters)
        loss = -said.sum() / max(len(said), 1)
        return loss, loss.detach()
