"""A confusion matrix per rater and pixel, predicted from the image."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from annotruth.errors import InputError
from annotruth.methods.base import Shape, register
from annotruth.methods.global_cm import GlobalCM
from annotruth.nn import LowRankAnnotators, PixelAnnotators


@register
@dataclass(frozen=True)
class PixelCM(GlobalCM):
    """Raters err differently at different places, and the image says where."""

    name = "pixel-cm"
    paper = "Zhang et al. 2020"
    summary = "a confusion matrix per rater and pixel, from the image"
    annotator_rate = 0.1  # slower than the truth model, or it explains ambiguous borders before the truth settles

    def annotator_model(self, shape: Shape) -> nn.Module:
        return PixelAnnotators(shape.channels, shape.raters, shape.classes, dims=shape.dims)


@register
@dataclass(frozen=True)
class PixelCMLowRank(GlobalCM):
    """As pixel-cm, with matrices of low rank, so that many classes fit into memory."""

    name = "pixel-cm-lowrank"
    paper = "Zhang et al. 2020, supplement"
    summary = "pixel-cm with low-rank matrices, for many classes"
    annotator_rate = 0.1

    rank: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rank < 1:
            raise InputError(f"rank must be at least 1, not {self.rank}.")

    def annotator_model(self, shape: Shape) -> nn.Module:
        return LowRankAnnotators(shape.channels, shape.raters, shape.classes, dims=shape.dims, rank=self.rank)
