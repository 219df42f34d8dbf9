"""Training on the truth itself: the upper bound."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from annotruth.data.annotations import Annotations
from annotruth.data.answers import Answers
from annotruth.errors import InputError
from annotruth.methods.base import DataSpec, Method, MethodModel, as_tensor
from annotruth.methods.registry import register
from annotruth.methods.targets import answers_of_one


@register
@dataclass(frozen=True)
class Clean(Method[MethodModel]):
    """The network learns the truth: the upper bound, where the truth is known."""

    name = "clean"
    paper = "upper bound of Zhang et al. 2020"
    summary = "a network on the true labels, where they are known"
    learns_from_raters = False
    learns_overlap = True

    def check(self, annotations: Annotations) -> None:
        if not annotations.has_truth:
            raise InputError(
                "The method clean learns from the truth, and these annotations carry none (truth/, or truth=). "
                "Without it use majority."
            )

    def mask_targets(self, annotations: Annotations, index: int) -> Tensor:
        return as_tensor(annotations.item_truth(index))[None]

    def label_targets(self, annotations: Annotations) -> Answers:
        return answers_of_one(annotations.truth)

    def n_targets(self, spec: DataSpec) -> int:
        return 1
