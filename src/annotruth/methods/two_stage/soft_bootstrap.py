"""A network on the majority vote that knows it to be noisy, and trusts its own answers, too."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from annotruth.errors import InputError
from annotruth.methods.base import Batch, MethodModel
from annotruth.methods.registry import register
from annotruth.methods.two_stage.majority import Majority
from annotruth.nn import is_labelled, noisy_label_loss


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

    def loss(self, model: MethodModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        log_truth = model.log_truth(batch.images)
        of_votes, likelihood = noisy_label_loss(log_truth, model.rater_confusion(batch), batch.labels)
        voted = is_labelled(batch.labels, log_truth.shape[1]).any(dim=1)
        entropy = -(log_truth.exp() * log_truth).sum(dim=1)
        of_own = (entropy * voted).sum() / voted.sum().clamp_min(1)
        return self.trust * of_votes + (1 - self.trust) * of_own, likelihood
