"""A weighted doctor net: the network imitates every rater, and the imitations are averaged with learnt weights."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotruth.methods.base import Batch, DataSpec, Method, MethodModel
from annotruth.methods.registry import register
from annotruth.nn import Confusion, IdentityConfusion, class_index, is_labelled, one_pixel_axis, rater_rows


class Doctors(nn.Module):
    """A head per rater on the network's scores, the identity at first, and a weight per rater."""

    def __init__(self, raters: int, classes: int) -> None:
        super().__init__()
        self.heads = nn.Parameter(F.pad(torch.eye(classes), (0, 0, 0, 1)).repeat(raters, 1, 1))  # the last row: a bias
        self.weights = nn.Parameter(torch.zeros(raters, 1))

    def forward(self, images: Tensor, raters: Tensor | None = None) -> Confusion:
        count = len(self.weights) if raters is None else len(raters)
        return IdentityConfusion(count, self.heads.shape[2], images.device)

    def log_opinions(self, scores: Tensor, raters: Tensor | None = None) -> Tensor:
        """What each rater would say: log-probabilities (batch, raters, classes, pixels) from scores (…, pixels)."""
        heads = rater_rows(self.heads, raters)
        opinions = torch.einsum("bis,rij->brjs", scores, heads[:, :-1]) + heads[:, -1, :, None]
        return opinions.log_softmax(dim=2)


class DoctorModel(MethodModel):
    """The truth is the weighted mean of all raters' imitations."""

    annotators: Doctors

    def log_truth(self, images: Tensor) -> Tensor:
        scores = self.truth(images)
        opinions = self.annotators.log_opinions(one_pixel_axis(scores, 2))
        weights = self.annotators.weights.log_softmax(dim=0).view(1, -1, 1, 1)
        return (opinions + weights).logsumexp(dim=1).view(scores.shape)


@register
@dataclass(frozen=True)
class DoctorNet(Method[DoctorModel]):
    """Each rater's head learns that rater's labels. The weights learn who predicts what *others* say.

    A head sees the network's class scores, where the paper's sees its last features: so any network will do.
    """

    name = "doctor-net"
    paper = "Guan et al. 2018"
    summary = "a head per rater, averaged with learnt weights"
    model_class = DoctorModel

    def annotator_model(self, spec: DataSpec) -> nn.Module:
        return Doctors(spec.raters, spec.classes)

    def loss(self, model: DoctorModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        scores, labels = one_pixel_axis(model.truth(batch.images), 2), one_pixel_axis(batch.labels, 2)
        opinions = model.annotators.log_opinions(scores, batch.raters)
        given, observed = is_labelled(labels, scores.shape[1]), class_index(labels, scores.shape[1])
        count = given.sum().clamp_min(1)
        own = opinions.gather(2, observed.unsqueeze(2)).squeeze(2)
        of_heads = -(own * given).sum() / count
        if labels.shape[1] < 2:
            return of_heads, of_heads.detach()
        weight = rater_rows(model.annotators.weights, batch.raters).softmax(dim=0).view(1, -1, 1)
        everybody = (weight.unsqueeze(3) * opinions.detach().exp()).sum(dim=1)
        others = (everybody.gather(1, observed) - weight * own.detach().exp()) / (1 - weight)
        of_weights = -(others.clamp_min(1e-9).log() * given).sum() / count
        return of_heads + of_weights, of_heads.detach()
