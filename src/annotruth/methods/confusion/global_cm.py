"""One confusion matrix per rater, learnt together with the network."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.methods.base import Batch, DataSpec, Method, MethodModel, register
from annotruth.methods.consensus import Consensus
from annotruth.methods.rater_features import RaterCode, feature_names, know_raters
from annotruth.methods.trace_rule import TraceRule
from annotruth.nn import FeatureAnnotators, GlobalAnnotators, IdentityConfusion, noisy_label_loss
from annotruth.validation import one_of

AT_THEIR_WORD = 0.5
"""Share of the warm-up in which labels are taken at their word, before raters are weighed."""
TOLD_APART = 0.4
"""It lasts until the network tells classes apart: until where it sees a class, the best rater does so this often."""
TOLD_APART_ALONE = 0.6
"""The same where too few people label a pixel for a vote, and the network must judge raters alone."""
LATEST = 0.6
"""Share of the training by which raters are weighed in any case."""
DOUBT = 1e-6
"""What is left to the classes the network does not take for the truth, so that logarithms stay finite."""


class WarmUpModel(MethodModel):
    """A truth model and an annotator model, with what is found out while they are trained.

    Attributes
    ----------
    weighed_from, joint_from : how much of the training was done when raters began to be weighed, and when truth and
        errors began to be learnt together; infinity = not yet
    """

    weighed_from: Tensor
    joint_from: Tensor

    def __init__(self, truth: nn.Module, annotators: nn.Module, shape: DataSpec) -> None:
        super().__init__(truth, annotators)
        self.consensus = Consensus(shape.raters, shape.classes)
        self.trace_rule = TraceRule()
        self.register_buffer("weighed_from", torch.tensor(torch.inf))
        self.register_buffer("joint_from", torch.tensor(torch.inf))


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
    rater_features : names of what is known of every rater (``rater_info``, or raters in dataset.json), a number or a
        word each, that may foretell errors: ("years", "site") or "years,site". Then a new rater has an expected matrix
    """

    name = "global-cm"
    paper = "Tanno et al. 2019; Zhang et al. 2020, rebuttal"
    summary = "one confusion matrix per rater, learnt with the network"
    tasks = ("masks",)
    learns_annotators = True
    annotator_rate = 3.0  # a matrix has few parameters and must keep pace with the network
    early_pace: ClassVar[float] = 1.0
    """How much faster raters' errors are learnt before they are learnt together with the truth."""

    trace_weight: float | None = None
    trace: Literal["posterior", "plain"] = "posterior"
    warmup: float = 0.4
    rater_features: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "rater_features", feature_names(self.rater_features))
        one_of(self.trace, ("posterior", "plain"), "trace")
        if not 0 <= self.warmup < 1:
            raise InputError(f"warmup is a share of the training, 0 ≤ warmup < 1, not {self.warmup}.")

    def check(self, annotations: Annotations) -> None:
        RaterCode.of(annotations, self.rater_features)

    def annotator_model(self, shape: DataSpec) -> nn.Module:
        if self.rater_features:
            return FeatureAnnotators(shape.raters, shape.classes, shape.rater_columns)
        return GlobalAnnotators(shape.raters, shape.classes)

    def prepare(self, parts: MethodModel, annotations: Annotations) -> None:
        if self.rater_features:
            know_raters(parts.annotators, annotations, self.rater_features)

    def finish(self, parts: MethodModel, batches: Iterable[Batch]) -> None:
        if self.rater_features:
            parts.annotators.table.settle()  # type: ignore[operator, union-attr]

    def build(self, shape: DataSpec, network: nn.Module | None = None) -> MethodModel:
        return WarmUpModel(
            network if network is not None else self.truth_model(shape), self.annotator_model(shape), shape
        )

    def settled(self, parts: MethodModel, progress: float) -> bool:
        assert isinstance(parts, WarmUpModel)
        return bool(progress >= parts.joint_from)

    def annotator_pace(self, parts: MethodModel, progress: float) -> float:
        assert isinstance(parts, WarmUpModel)
        return self.early_pace if not self.settled(parts, progress) and parts.consensus.by_vote() else 1.0

    def loss(self, parts: MethodModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        """Labels at their word, then weighed raters, then truth and errors together.

        The truth model must first look like the labels, class by class, or truth and errors may settle with classes
        swapped. Before it is freed, those who tell nothing must have lost their say, and the annotator model have
        learnt something of everybody's errors, or the truth would slide towards them.
        """
        assert isinstance(parts, WarmUpModel)
        log_truth = parts.log_truth(batch.images)
        if parts.training:
            self._advance(parts, log_truth, batch, progress)
        if self.settled(parts, progress):
            weight = parts.trace_rule.weight.item() if self.trace_weight is None else self.trace_weight
            return noisy_label_loss(log_truth, parts.rater_confusion(batch), batch.labels, weight, self.trace)
        word = IdentityConfusion(batch.labels.shape[1], log_truth.shape[1])
        at_their_word, likelihood = noisy_label_loss(log_truth, word, batch.labels)
        if progress < parts.weighed_from:
            return at_their_word, likelihood
        taken = parts.consensus.taken(log_truth, batch.labels, batch.raters).clamp_min(DOUBT).log()
        of_raters, _ = noisy_label_loss(taken, parts.rater_confusion(batch), batch.labels)
        return parts.consensus.loss(log_truth, batch.labels, batch.raters) + of_raters, likelihood

    def _advance(self, parts: WarmUpModel, log_truth: Tensor, batch: Batch, progress: float) -> None:
        """Keep the consensus up to date, and go on to the next stage when it is time."""
        if progress >= parts.joint_from:
            return
        parts.consensus.balance(log_truth)
        parts.consensus.count(log_truth, batch.labels, batch.raters)
        if progress < parts.weighed_from:
            enough = TOLD_APART if parts.consensus.by_vote() else TOLD_APART_ALONE
            ready = self.warmup == 0 or progress >= LATEST or parts.consensus.told_apart() >= enough
            if progress >= self.warmup * AT_THEIR_WORD and ready:
                parts.weighed_from.fill_(progress)
        if progress >= parts.weighed_from + self.warmup * (1 - AT_THEIR_WORD):
            parts.joint_from.fill_(progress)

    def after_epoch(self, parts: MethodModel, likelihood: float, progress: float) -> None:
        assert isinstance(parts, WarmUpModel)
        if self.settled(parts, progress):
            begun = float(parts.joint_from)
            parts.trace_rule.after_epoch(likelihood, (progress - begun) / (1 - begun))
