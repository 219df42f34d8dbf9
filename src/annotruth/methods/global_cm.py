"""One confusion matrix per rater, learnt together with the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from annotruth.errors import InputError
from annotruth.methods.base import Batch, Method, Parts, Shape, register
from annotruth.methods.consensus import Consensus, likeliest
from annotruth.methods.trace_rule import TraceRule
from annotruth.nn import GlobalAnnotators, IdentityConfusion, noisy_label_loss
from annotruth.validation import one_of

AT_THEIR_WORD = 2 / 3
"""Share of the warm-up in which labels are taken at their word, before raters are weighed."""
DOUBT = 1e-6
"""What is left to the classes the network does not take for the truth, so that logarithms stay finite."""


class LearntParts(Parts):
    """A truth model and an annotator model, with what is found out while they are trained."""

    def __init__(self, truth: nn.Module, annotators: nn.Module, shape: Shape) -> None:
        super().__init__(truth, annotators)
        self.consensus = Consensus(shape.raters, shape.classes)
        self.trace_rule = TraceRule()


@register
@dataclass(frozen=True)
class GlobalCM(Method):
    """Each rater errs the same way everywhere.

    Options
    -------
    trace_weight : how strongly raters are made out to be as unreliable as the labels allow; None = as strongly as the
        likelihood of held-out labels allows (``methods.trace_rule``)
    trace : which diagonal entries count, "posterior" or "plain" (see ``nn.noisy_label_loss``)
    warmup : share of the training before errors are learnt together with the truth
    """

    name = "global-cm"
    paper = "Tanno et al. 2019; Zhang et al. 2020, rebuttal"
    summary = "one confusion matrix per rater, learnt with the network"
    learns_annotators = True
    annotator_rate = 3.0  # a matrix has few parameters and must keep pace with the network

    trace_weight: float | None = None
    trace: Literal["posterior", "plain"] = "posterior"
    warmup: float = 0.3

    def __post_init__(self) -> None:
        one_of(self.trace, ("posterior", "plain"), "trace")
        if not 0 <= self.warmup < 1:
            raise InputError(f"warmup is a share of the training, 0 ≤ warmup < 1, not {self.warmup}.")

    def annotator_model(self, shape: Shape) -> nn.Module:
        return GlobalAnnotators(shape.raters, shape.classes)

    def build(self, shape: Shape, network: nn.Module | None = None) -> Parts:
        return LearntParts(
            network if network is not None else self.truth_model(shape), self.annotator_model(shape), shape
        )

    def settled(self, progress: float) -> bool:
        return progress >= self.warmup

    def loss(self, parts: Parts, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        """Labels at their word, then weighed raters, then truth and errors together.

        The truth model must first look like the labels, class by class, or truth and errors may settle with classes
        swapped. Before it is freed, those who tell nothing must have lost their say, and the annotator model have
        learnt something of everybody's errors, or the truth would slide towards them.
        """
        assert isinstance(parts, LearntParts)
        log_truth = parts.log_truth(batch.images)
        if self.settled(progress):
            weight = parts.trace_rule.weight.item() if self.trace_weight is None else self.trace_weight
            return noisy_label_loss(log_truth, parts.rater_confusion(batch), batch.labels, weight, self.trace)
        word = IdentityConfusion(batch.labels.shape[1], log_truth.shape[1])
        at_their_word, likelihood = noisy_label_loss(log_truth, word, batch.labels)
        if progress < self.warmup * AT_THEIR_WORD:
            return at_their_word, likelihood
        if parts.training:
            parts.consensus.count(log_truth, batch.labels, batch.raters)
        taken = likeliest(log_truth).clamp_min(DOUBT).log()
        of_raters, _ = noisy_label_loss(taken, parts.rater_confusion(batch), batch.labels)
        return parts.consensus.loss(log_truth, batch.labels, batch.raters) + of_raters, likelihood

    def after_epoch(self, parts: Parts, likelihood: float, progress: float) -> None:
        assert isinstance(parts, LearntParts)
        if self.settled(progress):
            parts.trace_rule.after_epoch(likelihood, (progress - self.warmup) / (1 - self.warmup))
