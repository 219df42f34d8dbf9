"""Coarse masks as what somebody says of hidden fine ones: the idea of CoarseSup."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from annotruth.data.annotations import Annotations
from annotruth.methods.base import Batch, DataSpec, Method, MethodModel, as_tensor
from annotruth.methods.protocols import Stages
from annotruth.methods.registry import register
from annotruth.methods.strokes.drawings import check_strokes, whole_masks
from annotruth.methods.warmup import Consensus, loss_at_their_word
from annotruth.nn import GlobalConfusion, noisy_label_loss

AT_THEIR_WORD = 0.5
"""Share of the training in which coarse masks are taken at their word and counted against the network; then the counts
stay, or network and matrices would soon agree that there is nothing but background."""


class CoarseSupModel(MethodModel):
    """A network, and the matrices by which coarse labels come about."""

    def __init__(self, truth: nn.Module, annotators: nn.Module, spec: DataSpec) -> None:
        super().__init__(truth, annotators)
        self.coarse = Consensus(spec.raters, spec.classes)


@register
@dataclass(frozen=True)
class CoarseSup(Stages, Method[CoarseSupModel]):
    """The network is the posterior of fine labels, and coarse ones follow from these by one matrix per rater.

    Simplified: the paper has several kinds of coarse labels (boxes, keypoints, figure and ground) beside a few fine
    masks, and learns how each follows from the fine ones by a small network. Here there is one kind, coarse masks whose
    unmarked pixels are background, and a counted matrix; the objective is the likelihood of the coarse labels
    itself, of which the paper has a lower bound.
    """

    name = "coarse-sup"
    paper = "Saha et al. 2022, its idea; comparison of the coarse-label paper"
    summary = "a network as posterior of fine masks behind coarse ones"
    tasks = ("masks",)
    model_class = CoarseSupModel
    learns_from_raters = False

    def check(self, annotations: Annotations) -> None:
        check_strokes(annotations, unmarked_is_background=True, negatives=False)

    def mask_targets(self, annotations: Annotations, index: int) -> Tensor:
        return whole_masks(as_tensor(annotations.item_masks(index)))

    def objective_is_final(self, model: CoarseSupModel, progress: float) -> bool:
        return progress >= AT_THEIR_WORD

    def loss(self, model: CoarseSupModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        log_truth = model.log_truth(batch.images)
        if self.objective_is_final(model, progress):
            return noisy_label_loss(log_truth, GlobalConfusion(model.coarse.matrices()), batch.labels)
        if model.training:
            model.coarse.balance(log_truth)
            model.coarse.count(log_truth, batch.labels)
        return loss_at_their_word(log_truth, batch.labels)
