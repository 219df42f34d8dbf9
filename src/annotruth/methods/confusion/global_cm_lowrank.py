"""Global matrices of low rank, for so many classes that a full matrix per rater does not fit."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from annotruth.methods.base import Batch, DataSpec, Method, MethodModel
from annotruth.methods.options import check_at_least
from annotruth.methods.protocols import Stages
from annotruth.methods.registry import register
from annotruth.methods.warmup import check_share, loss_at_their_word
from annotruth.nn import GlobalLowRankAnnotators, noisy_label_loss


@register
@dataclass(frozen=True)
class GlobalCMLowRank(Stages, Method[MethodModel]):
    """Each rater is faithful with a chance of their own for each class; else draws from one of a few patterns.

    Options
    -------
    rank : how many patterns a rater has
    trace_weight : how strongly raters are made out to be as unreliable as the labels allow
    warmup : share of the training in which labels are taken at their word
    """

    name = "global-cm-lowrank"
    paper = "Tanno et al. 2019, with the low rank of Zhang et al. 2020"
    summary = "global-cm with low-rank matrices, for very many classes"
    learns_annotators = True
    shrinks_trace = True
    annotator_rate = 10.0  # a row has few parameters, and learns from its own rater's labels only

    rank: int = 1
    trace_weight: float = 0.1
    warmup: float = 0.15

    def __post_init__(self) -> None:
        check_at_least(1, rank=self.rank)
        check_share("warmup", self.warmup)

    def annotator_model(self, spec: DataSpec) -> nn.Module:
        return GlobalLowRankAnnotators(spec.raters, spec.classes, self.rank)

    def objective_is_final(self, model: MethodModel, progress: float) -> bool:
        return progress >= self.warmup

    def loss(self, model: MethodModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        log_truth = model.log_truth(batch.images)
        if self.objective_is_final(model, progress):
            return noisy_label_loss(log_truth, model.rater_confusion(batch), batch.labels, self.trace_weight)
        return loss_at_their_word(log_truth, batch.labels)
