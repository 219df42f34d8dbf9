"""Strokes, and a preference for what neighbours or the network itself make likely: the idea of ScribbleSup."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from annotruth.methods.base import Batch, MethodModel
from annotruth.methods.options import check_not_negative
from annotruth.methods.registry import register
from annotruth.methods.strokes.partial_ce import PartialCE, stroke_loss
from annotruth.nn import is_labelled, smoothness_loss
from annotruth.validation import one_of


@register
@dataclass(frozen=True)
class ScribbleSup(PartialCE):
    """Strokes spread to unmarked pixels along what looks alike.

    Simplified: the paper alternates between a graph cut over superpixels, which labels the unmarked ones, and training
    on its result. Here the graph's energy is relaxed and part of the loss, as later work does; pixels take the place of
    superpixels.

    Options
    -------
    regulariser : "crf" prefers one class among neighbours that look alike, "entropy" decided pixels
    weight : how much it counts
    others as partial-ce
    """

    name = "scribble-sup"
    paper = "Lin et al. 2016, its idea; comparison of the coarse-label paper"
    summary = "a network on strokes that spread to pixels that look alike"

    regulariser: Literal["crf", "entropy"] = "crf"
    weight: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self.regulariser, ("crf", "entropy"), "regulariser")
        check_not_negative(weight=self.weight)

    def loss(self, model: MethodModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        log_truth = model.log_truth(batch.images)
        loss, likelihood = stroke_loss(log_truth, batch.labels)
        if not is_labelled(batch.labels, log_truth.shape[1]).any():
            return loss, likelihood
        # It sets in slowly: a young network has nothing to be decided about.
        weight = self.weight * min(2 * progress, 1.0)
        if self.regulariser == "crf":
            return loss + weight * smoothness_loss(log_truth, batch.images), likelihood
        return loss - weight * (log_truth.exp() * log_truth).sum(dim=1).mean(), likelihood
