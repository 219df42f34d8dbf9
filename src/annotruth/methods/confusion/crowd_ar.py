"""CrowdAR: a crowd layer whose targets are softened by how reliable each single answer seems."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotruth.methods.base import Batch, DataSpec, Method, MethodModel
from annotruth.methods.confusion.crowd_layer import CrowdLayer
from annotruth.methods.registry import register
from annotruth.methods.warmup import check_share
from annotruth.nn import is_labelled, item_embedding, rater_rows
from annotruth.nn.annotators.embedded import LENGTH


class ReliableCrowdLayer(CrowdLayer):
    """A crowd layer, and how reliable an answer is: a rater's expertise less an item's difficulty, class by class."""

    def __init__(self, channels: int, raters: int, classes: int, dims: int) -> None:
        super().__init__(raters, classes)
        self.expertise = nn.Parameter(torch.zeros(raters, classes))
        self.items = item_embedding(channels, dims)
        self.difficulty = nn.Linear(LENGTH, classes)
        self.scales, self.offset = nn.Parameter(torch.zeros(classes)), nn.Parameter(torch.zeros(()))

    def reliability(self, truth: Tensor, images: Tensor, raters: Tensor | None = None) -> Tensor:
        """Log-odds (items, raters) of answers to be right, for probabilities (items, classes) of the truth."""
        difficulty = self.difficulty(self.items(images).sigmoid()).sigmoid()
        expertise = rater_rows(self.expertise, raters).sigmoid()
        margin = (expertise[None] - difficulty[:, None]) * truth[:, None]
        return margin @ F.softplus(self.scales) + self.offset  # expertise never harms: scales are positive


class ReliableCrowdLayerModel(MethodModel):
    """A network with such a layer behind it."""

    annotators: ReliableCrowdLayer


@register
@dataclass(frozen=True)
class CrowdAR(Method[ReliableCrowdLayerModel]):
    """An answer that seems unreliable teaches little: its target is mixed with every class being as likely.

    Reliability is learnt from whether answers agree with what the network takes for true.

    Options
    -------
    label_weight : how much labels count in the loss; the rest is for their reliability
    """

    name = "crowd-ar"
    paper = "Cao et al. 2023"
    summary = "a crowd layer whose targets are softened where answers seem unreliable"
    tasks = ("labels",)
    model_class = ReliableCrowdLayerModel
    learns_annotators = True

    label_weight: float = 0.9

    def __post_init__(self) -> None:
        check_share("label_weight", self.label_weight)

    def annotator_model(self, spec: DataSpec) -> nn.Module:
        return ReliableCrowdLayer(spec.channels, spec.raters, spec.classes, spec.dims)

    def loss(self, model: ReliableCrowdLayerModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        layer, truth = model.annotators, model.log_truth(batch.images).exp()
        item, rater = is_labelled(batch.labels, truth.shape[1]).nonzero(as_tuple=True)
        label, count = batch.labels[item, rater].long(), max(len(item), 1)
        scores = torch.einsum("ni,nij->nj", truth[item], rater_rows(layer.maps, batch.raters)[rater])
        said = scores.log_softmax(dim=1)
        odds = layer.reliability(truth, batch.images, batch.raters)[item, rater]
        reliable = odds.sigmoid()
        own = said.gather(1, label[:, None]).squeeze(1)
        of_labels = -(reliable * own + (1 - reliable) * said.mean(dim=1)).sum() / count
        right = (truth.argmax(dim=1)[item] == label).to(odds.dtype)
        of_reliability = F.binary_cross_entropy_with_logits(odds, right, reduction="sum") / count
        loss = self.label_weight * of_labels + (1 - self.label_weight) * of_reliability
        return loss, -own.detach().sum() / count
