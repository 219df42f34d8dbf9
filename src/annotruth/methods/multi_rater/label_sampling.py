"""Label sampling: of every item, each step sees the labels of one rater, drawn at random."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from annotruth.methods.base import Batch, Method, MethodModel
from annotruth.methods.registry import register
from annotruth.methods.warmup import loss_at_their_word
from annotruth.nn import is_labelled


@register
@dataclass(frozen=True)
class LabelSampling(Method[MethodModel]):
    """Everybody is right in turn, so that the network learns how often each class is drawn, and stays unsure."""

    name = "label-sampling"
    paper = "Jensen et al. 2019 (UECNN)"
    summary = "a network on one rater's labels at a time, drawn at random"
    tasks = ("masks",)

    def loss(self, model: MethodModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        log_truth = model.log_truth(batch.images)
        # What is held out is judged by all labels, not by who happens to be drawn.
        labels = one_rater_each(batch.labels, log_truth.shape[1]) if model.training else batch.labels
        return loss_at_their_word(log_truth, labels)


def one_rater_each(labels: Tensor, classes: int) -> Tensor:
    """Labels (batch, 1, *spatial) of one rater per item, drawn at random among those who labelled anything of it.

    Examples
    --------
    >>> labels = torch.tensor([[[255, 255], [0, 1]], [[1, 1], [255, 255]]], dtype=torch.uint8)
    >>> one_rater_each(labels, classes=2)
    tensor([[[0, 1]],
    <BLANKLINE>
            [[1, 1]]], dtype=torch.uint8)
    """
    there = is_labelled(labels, classes).flatten(2).any(dim=2).float()
    nobody = there.sum(dim=1, keepdim=True) == 0
    who = torch.multinomial(there + nobody, num_samples=1).squeeze(1)
    return labels[torch.arange(len(labels), device=labels.device), who].unsqueeze(1)
