"""Matrices that depend on rater and item: what an item does to them is the same for all raters."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotruth.methods.base import Batch, DataSpec, Method, MethodModel
from annotruth.methods.protocols import Stages
from annotruth.methods.registry import register
from annotruth.methods.warmup import check_share, loss_at_their_word
from annotruth.nn import (
    AnnotatorModel,
    Confusion,
    GlobalConfusion,
    identity_scores,
    item_embedding,
    noisy_label_loss,
    rater_rows,
)
from annotruth.nn.annotators.embedded import LENGTH
from annotruth.nn.confusion.pixel import log_row_probabilities

HELD_BACK = 0.1
"""What depends on the item is learnt so much more slowly than the rest, or it would explain everything by itself."""


class ItemAndRaterAnnotators(AnnotatorModel):
    """Scores of an item, which all raters share, plus scores of a rater, made into a matrix for both."""

    def __init__(self, channels: int, raters: int, classes: int, dims: int) -> None:
        super().__init__()
        self.classes = classes
        self.items = item_embedding(channels, dims)
        self.shared = nn.Linear(LENGTH, classes * classes)
        self.own = nn.Parameter(torch.zeros(raters, classes, classes))
        if self.shared.weight.device.type != "meta":
            self.shared.weight.data.zero_()
            self.shared.bias.data.copy_(identity_scores(classes).flatten())

    def forward(self, images: Tensor, raters: Tensor | None = None) -> Confusion:
        """Matrices of all raters, or of some (their positions), for every item."""
        scores = self.scores_of(images)[:, None] + rater_rows(self.own, raters)[None]
        logs = log_row_probabilities(scores, dim=3)
        return GlobalConfusion(logs.exp(), logs)

    def scores_of(self, images: Tensor) -> Tensor:
        """What items do to everybody's matrix: scores (items, classes, classes)."""
        scores = HELD_BACK * F.linear(self.items(images).relu(), self.shared.weight) + self.shared.bias
        return scores.unflatten(1, (self.classes, self.classes))


class ItemAndRaterModel(MethodModel):
    """A network beside matrices that depend on rater and item."""

    annotators: ItemAndRaterAnnotators


@register
@dataclass(frozen=True)
class TAIDTM(Stages, Method[ItemAndRaterModel]):
    """Few answers of a rater say little of how their errors depend on the item: that is learnt from everybody's.

    After the idea of the paper, where matrices come from examples that are surely right, and a graph carries them over
    between raters.

    Options
    -------
    warmup : share of the training in which labels are taken at their word
    """

    name = "taidtm"
    paper = "after Li et al. 2024"
    summary = "matrices per rater and item: what items do is shared by all raters"
    tasks = ("labels",)
    model_class = ItemAndRaterModel
    learns_annotators = True

    warmup: float = 0.3

    def __post_init__(self) -> None:
        check_share("warmup", self.warmup)

    def annotator_model(self, spec: DataSpec) -> nn.Module:
        return ItemAndRaterAnnotators(spec.channels, spec.raters, spec.classes, spec.dims)

    def objective_is_final(self, model: ItemAndRaterModel, progress: float) -> bool:
        return progress >= self.warmup

    def loss(self, model: ItemAndRaterModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        log_truth = model.log_truth(batch.images)
        if self.objective_is_final(model, progress):
            return noisy_label_loss(log_truth, model.rater_confusion(batch), batch.labels)
        return loss_at_their_word(log_truth, batch.labels)
