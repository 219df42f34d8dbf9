"""A network on the majority vote that knows it to be noisy: one matrix for everybody."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from annotruth.methods.base import HEAD_START, Batch, DataSpec, MethodModel
from annotruth.methods.registry import register
from annotruth.methods.two_stage.majority import Majority
from annotruth.nn import GlobalAnnotators, noisy_label_loss


@register
@dataclass(frozen=True)
class SharedCM(Majority):
    """One matrix stands between the truth and the majority vote, whoever voted.

    Options
    -------
    trace_weight : how strongly the vote is made out to be as unreliable as it allows
    """

    name = "shared-cm"
    paper = "Sukhbaatar et al. 2015, with the trace of Tanno et al. 2019"
    summary = "one confusion matrix for all raters together"
    annotator_rate = 3.0
    head_start = HEAD_START

    trace_weight: float = 0.01

    def annotator_model(self, spec: DataSpec) -> nn.Module:
        return GlobalAnnotators(1, spec.classes)

    def loss(self, model: MethodModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        log_truth = model.log_truth(batch.images)
        return noisy_label_loss(log_truth, model.rater_confusion(batch), batch.labels, self.trace_weight, "plain")
