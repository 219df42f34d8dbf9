"""Every rater's labels count alike."""

from __future__ import annotations

from dataclasses import dataclass

from annotruth.methods.base import Method, MethodModel
from annotruth.methods.registry import register


@register
@dataclass(frozen=True)
class Mean(Method[MethodModel]):
    """Every rater's labels count alike: the network learns their average."""

    name = "mean"
    paper = "baseline of Zhang et al. 2020"
    summary = "a network on the raters' average labels"
