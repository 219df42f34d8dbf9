"""A network on the majority vote."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from annotruth.data.annotations import Annotations
from annotruth.data.answers import Answers
from annotruth.fusion import MajorityVote
from annotruth.methods.base import DataSpec, Method, MethodModel
from annotruth.methods.registry import register
from annotruth.methods.targets import fused_answers, majority_of


@register
@dataclass(frozen=True)
class Majority(Method[MethodModel]):
    """The network learns the most frequent label of each pixel or item; where raters are tied, no pixel teaches."""

    name = "majority"
    paper = "baseline of Zhang et al. 2020"
    summary = "a network on the majority vote"
    learns_overlap = True

    def mask_targets(self, annotations: Annotations, index: int) -> Tensor:
        return majority_of(super().mask_targets(annotations, index), len(annotations.classes))

    def label_targets(self, annotations: Annotations) -> Answers:
        return fused_answers(MajorityVote(), annotations)

    def n_targets(self, spec: DataSpec) -> int:
        return 1
