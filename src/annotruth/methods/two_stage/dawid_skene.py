"""Two stages: Dawid and Skene's model on the label table, then a network on what it takes for true."""

from __future__ import annotations

from dataclasses import dataclass

from annotruth.data.annotations import Annotations
from annotruth.data.answers import Answers
from annotruth.fusion import DawidSkene
from annotruth.methods.base import DataSpec, Method, MethodModel
from annotruth.methods.registry import register
from annotruth.methods.targets import fused_answers


@register
@dataclass(frozen=True)
class FusedByDawidSkene(Method[MethodModel]):
    """Dawid and Skene's model on the whole label table, then a network on what it takes for true."""

    name = "dawid-skene"
    paper = "Dawid and Skene 1979; two-stage baseline"
    summary = "a network on the labels that Dawid-Skene makes out"
    tasks = ("labels",)

    def label_targets(self, annotations: Annotations) -> Answers:
        return fused_answers(DawidSkene(), annotations)

    def n_targets(self, spec: DataSpec) -> int:
        return 1
