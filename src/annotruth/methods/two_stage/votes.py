"""Training without an annotator model: on every label, on the majority, or on the truth itself."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from annotruth.data.annotations import Annotations
from annotruth.data.answers import Answers
from annotruth.errors import InputError
from annotruth.fusion import MajorityVote
from annotruth.methods.base import DataSpec, Method, answers_of_one, as_tensor, fused_answers, majority_of, register


@register
@dataclass(frozen=True)
class Mean(Method):
    """Every rater's labels count alike: the network learns their average."""

    name = "mean"
    paper = "baseline of Zhang et al. 2020"
    summary = "a network on the raters' average labels"


@register
@dataclass(frozen=True)
class Majority(Method):
    """The network learns the most frequent label of each pixel or item."""

    name = "majority"
    paper = "baseline of Zhang et al. 2020"
    summary = "a network on the majority vote"

    def mask_targets(self, annotations: Annotations, index: int) -> Tensor:
        return majority_of(super().mask_targets(annotations, index), len(annotations.classes))

    def label_targets(self, annotations: Annotations) -> Answers:
        return fused_answers(MajorityVote(), annotations)

    def n_targets(self, shape: DataSpec) -> int:
        return 1


@register
@dataclass(frozen=True)
class Clean(Method):
    """The network learns the truth: the upper bound, where the truth is known."""

    name = "clean"
    paper = "upper bound of Zhang et al. 2020"
    summary = "a network on the true labels, where they are known"
    learns_from_raters = False

    def check(self, annotations: Annotations) -> None:
        if not annotations.has_truth:
            raise InputError(
                "The method clean learns from the truth, and these annotations carry none (truth/, or truth=)."
            )

    def mask_targets(self, annotations: Annotations, index: int) -> Tensor:
        return as_tensor(annotations.item_truth(index))[None]

    def label_targets(self, annotations: Annotations) -> Answers:
        return answers_of_one(annotations.truth)

    def n_targets(self, shape: DataSpec) -> int:
        return 1
