"""Networks on the majority vote that know it to be noisy: one matrix for everybody, or trust in their own answers."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from annotruth.errors import InputError
from annotruth.methods.base import Batch, DataSpec, MethodModel, register
from annotruth.methods.two_stage.votes import Majority
from annotruth.nn import GlobalAnnotators, is_labelled, noisy_label_loss


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

    trace_weight: float = 0.01

    def annotator_model(self, shape: DataSpec) -> nn.Module:
        return GlobalAnnotators(1, shape.classes)

    def loss(self, parts: MethodModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        log_truth = parts.log_truth(batch.images)
        return noisy_label_loss(log_truth, parts.rater_confusion(batch), batch.labels, self.trace_weight, "plain")


@register
@dataclass(frozen=True)
class SoftBootstrap(Majority):
    """The target is the vote mixed with the network's own answer, so that what it is sure of outweighs a vote.

    Options
    -------
    trust : the vote's share of the target; the rest is the network's own answer
    """

    name = "soft-bootstrap"
    paper = "Reed et al. 2015"
    summary = "a network on the majority vote mixed with its own answer"

    trust: float = 0.95

    def __post_init__(self) -> None:
        if not 0 <= self.trust <= 1:
            raise InputError(f"trust is a share, 0 ≤ trust ≤ 1, not {self.trust}.")

    def loss(self, parts: MethodModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        log_truth = parts.log_truth(batch.images)
        of_votes, likelihood = noisy_label_loss(log_truth, parts.rater_confusion(batch), batch.labels)
        voted = is_labelled(batch.labels, log_truth.shape[1]).any(dim=1)
        entropy = -(log_truth.exp() * log_truth).sum(dim=1)
        of_own = (entropy * voted).sum() / voted.sum().clamp_min(1)
        return self.trust * of_votes + (1 - self.trust) * of_own, likelihood
