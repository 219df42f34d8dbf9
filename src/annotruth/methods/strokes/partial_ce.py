"""Strokes taken at their word, and nothing else: the plain partial cross-entropy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from annotruth.data.annotations import Annotations
from annotruth.methods.base import Batch, DataSpec, Method, MethodModel
from annotruth.methods.registry import register
from annotruth.methods.strokes.drawings import both_drawings, check_strokes
from annotruth.nn import Complement, IdentityConfusion, NegativeConfusion, is_labelled, noisy_label_loss
from annotruth.validation import one_of


@register
@dataclass(frozen=True)
class PartialCE(Method[MethodModel]):
    """Marks are true, and say nothing of other pixels.

    Options
    -------
    unmarked : "ignore", or "background" where what somebody who drew on an image left unmarked is background
    negatives : whether to learn from drawings of what is not there
    """

    name = "partial-ce"
    paper = "baseline of weakly supervised segmentation"
    summary = "a network on strokes, taken at their word"
    tasks = ("masks",)
    learns_from_raters = False  # strokes cannot be judged as whole masks can

    unmarked: Literal["ignore", "background"] = "ignore"
    negatives: bool = True

    def __post_init__(self) -> None:
        one_of(self.unmarked, ("ignore", "background"), "unmarked")

    def check(self, annotations: Annotations) -> None:
        check_strokes(annotations, self.unmarked == "background", self.negatives)

    def mask_targets(self, annotations: Annotations, index: int) -> Tensor:
        """Positive, then negative drawings: (2 · raters, *spatial)."""
        return both_drawings(annotations, index, self.unmarked == "background", self.negatives)

    def n_targets(self, spec: DataSpec) -> int:
        return 2 * spec.raters

    def loss(self, model: MethodModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        return stroke_loss(model.log_truth(batch.images), batch.labels)


def stroke_loss(log_truth: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Negative log-likelihood per mark, of positive and negative drawings (batch, 2 · raters, *spatial); twice.

    "Not class j" has the probability Σ_{k ≠ j} p_k / (classes − 1).

    Examples
    --------
    >>> log_truth = torch.tensor([0.5, 0.3, 0.2]).log().view(1, 3, 1, 1)
    >>> labels = torch.tensor([255, 0], dtype=torch.uint8).view(1, 2, 1, 1)  # nothing positive, and "not class 0"
    >>> round(stroke_loss(log_truth, labels)[0].neg().exp().item(), 4)
    0.25
    """
    classes = log_truth.shape[1]
    total = count = 0 * log_truth.sum()
    word = IdentityConfusion(labels.shape[1] // 2, classes)
    said_not = NegativeConfusion(word, Complement(classes)().to(log_truth))
    for confusion, drawn in zip((word, said_not), labels.chunk(2, dim=1)):
        given = is_labelled(drawn, classes).sum()
        if given:
            total = total + given * noisy_label_loss(log_truth, confusion, drawn)[0]
            count = count + given
    loss = total / torch.clamp(count.detach(), min=1)
    return loss, loss.detach()
