"""One confusion matrix per rater, learnt together with the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from annotruth.errors import InputError
from annotruth.methods.base import Batch, Method, Parts, Shape, register
from annotruth.methods.warm_up import warm_up_loss
from annotruth.nn import GlobalAnnotators, noisy_label_loss
from annotruth.validation import one_of


@register
@dataclass(frozen=True)
class GlobalCM(Method):
    """Each rater errs the same way everywhere.

    Options
    -------
    trace_weight : how strongly raters are made out to be as unreliable as the labels allow
    trace : which diagonal entries count, "posterior" or "plain" (see ``nn.noisy_label_loss``)
    warmup : share of the training in which the labels are taken at their word, before errors are learnt
    """

    name = "global-cm"
    paper = "Tanno et al. 2019; Zhang et al. 2020, rebuttal"
    summary = "one confusion matrix per rater, learnt with the network"
    learns_annotators = True
    annotator_rate = 3.0  # a matrix has few parameters and must keep pace with the network

    trace_weight: float = 0.01
    trace: Literal["posterior", "plain"] = "posterior"
    warmup: float = 0.3

    def __post_init__(self) -> None:
        one_of(self.trace, ("posterior", "plain"), "trace")
        if not 0 <= self.warmup < 1:
            raise InputError(f"warmup is a share of the training, 0 ≤ warmup < 1, not {self.warmup}.")

    def annotator_model(self, shape: Shape) -> nn.Module:
        return GlobalAnnotators(shape.raters, shape.classes)

    def settled(self, progress: float) -> bool:
        return progress >= self.warmup

    def loss(self, parts: Parts, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        images, labels = batch.images, batch.labels
        log_truth = parts.log_truth(images)
        if not self.settled(progress):
            return warm_up_loss(log_truth, labels, progress / self.warmup, lambda: parts.annotators(images))
        return noisy_label_loss(log_truth, parts.annotators(images), labels, self.trace_weight, self.trace)
