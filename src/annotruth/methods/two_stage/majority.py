"""A network on the majority vote."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from annotruth.data.annotations import Annotations
from annotruth.data.answers import Answers
from annotruth.fusion import MajorityVote
from annotruth.methods.base import DataSpec, M, Method, MethodModel
from annotruth.methods.registry import register
from annotruth.methods.targets import fused_answers, majority_of


@dataclass(frozen=True)
class OnVote(Method[M]):
    """What all methods share that learn from the vote: the most frequent label of each pixel or item."""

    learns_overlap = True

    def mask_targets(self, annotations: Annotations, index: int) -> Tensor:
        return majority_of(super().mask_targets(annotations, index), len(annotations.classes))

    def label_targets(self, annotations: Annotations) -> Answers:
        return fused_answers(MajorityVote(), annotations)

    def n_targets(self, spec: DataSpec) -> int:
        return 1


@register
@dataclass(frozen=True)
class Majority(OnVote[MethodModel]):
    """The network learns the most frequent label of each pixel or item; where raters are tied, no pixel teaches."""

    name = "majority"
    paper = "baseline of Zhang et al. 2020"
    summary = "a network on the majority vote"
