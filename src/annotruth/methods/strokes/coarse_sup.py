"""Coarse masks as what somebody says of hidden fine ones: the idea of CoarseSup."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from annotruth.data.annotations import Annotations
from annotruth.methods.base import Batch, DataSpec, Method, MethodModel, as_tensor, register
from annotruth.methods.consensus import Consensus
from annotruth.methods.strokes.drawings import check_strokes, whole_masks
from annotruth.nn import GlobalConfusion, IdentityConfusion, noisy_label_loss

AT_THEIR_WORD = 0.5
"""Share of the training in which coarse masks are taken at their word and counted against the network; then the counts
stay, or network and matrices would soon agree that there is nothing but background."""


class CoarseSupModel(MethodModel):
    """A network, and the matrices by which coarse labels come about."""

    def __init__(self, truth: nn.Module, annotators: nn.Module, shape: DataSpec) -> None:
        super().__init__(truth, annotators)
        self.coarse = Consensus(shape.raters, shape.classes)


@register
@dataclass(frozen=True)
class CoarseSup(Method):
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
    learns_from_raters = False

    def check(self, annotations: Annotations) -> None:
        check_strokes(annotations, unmarked_is_background=True, negatives=False)

    def mask_targets(self, annotations: Annotations, index: int) -> Tensor:
        return whole_masks(as_tensor(annotations.item_masks(index)))

    def build(self, shape: DataSpec, network: nn.Module | None = None) -> MethodModel:
        truth = network if network is not None else self.truth_model(shape)
        return CoarseSupModel(truth, self.annotator_model(shape), shape)

    def settled(self, parts: MethodModel, progress: float) -> bool:
        return progress >= AT_THEIR_WORD

    def loss(self, parts: MethodModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        assert isinstance(parts, CoarseSupModel)
        log_truth = parts.log_truth(batch.images)
        if self.settled(parts, progress):
            return noisy_label_loss(log_truth, GlobalConfusion(parts.coarse.matrices()), batch.labels)
        if parts.training:
            parts.coarse.balance(log_truth)
            parts.coarse.count(log_truth, batch.labels)
        word = IdentityConfusion(batch.labels.shape[1], log_truth.shape[1])
        return noisy_label_loss(log_truth, word, batch.labels)
