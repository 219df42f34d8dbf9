"""A confusion matrix of low rank per rater and pixel: for so many classes that full ones do not fit into memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor, nn

from annotruth.errors import InputError
from annotruth.methods.anchor import Anchored, Foretells
from annotruth.methods.base import Batch, DataSpec
from annotruth.methods.confusion.pixel_cm import EARLY_PACE
from annotruth.methods.options import check_at_least
from annotruth.methods.registry import register
from annotruth.methods.warmup import WarmUp, WarmUpModel, check_warmup
from annotruth.nn import DrawingAnnotators, LowRankAnnotators
from annotruth.validation import one_of


@register
@dataclass(frozen=True)
class PixelCMLowRank(Foretells):
    """As pixel-cm, with matrices of low rank, so that many classes fit into memory.

    Options
    -------
    trace_weight, trace : as of global-cm
    warmup : "drawings" = as of pixel-cm; a number = share of the training in which raters are weighed by consensus
    rater_features : none can be used here; pixel-cm and global-cm take them
    rank : how many patterns of errors a rater has at a pixel
    """

    name = "pixel-cm-lowrank"
    paper = "Zhang et al. 2020, supplement"
    summary = "pixel-cm with low-rank matrices, for many classes"
    tasks = ("masks",)
    model_class = WarmUpModel
    learns_annotators = True
    shrinks_trace = True
    annotator_rate = 0.1

    trace_weight: float | None = None
    trace: Literal["posterior", "plain"] = "posterior"
    warmup: float | Literal["drawings"] = "drawings"
    rater_features: tuple[str, ...] = ()
    rank: int = 1

    def __post_init__(self) -> None:
        one_of(self.trace, ("posterior", "plain"), "trace")
        check_warmup(self.name, self.warmup, ("drawings",))
        check_at_least(1, rank=self.rank)
        if self.rater_features:
            raise InputError("pixel-cm-lowrank takes no rater_features; pixel-cm and global-cm do.")

    @property
    def foretells(self) -> bool:
        """Whether drawings are foretold first."""
        return self.warmup == "drawings"

    def annotator_model(self, spec: DataSpec) -> nn.Module:
        if self.foretells:
            return DrawingAnnotators(
                spec.channels, spec.raters, spec.classes, spec.dims, plan=spec.network, rank=self.rank
            )
        return LowRankAnnotators(spec.channels, spec.raters, spec.classes, spec.dims, rank=self.rank, plan=spec.network)

    @property
    def stages(self) -> Anchored | WarmUp:
        if isinstance(self.warmup, str):
            return Anchored(self.trace_weight, self.trace, self.annotator_rate)
        return WarmUp(self.warmup, self.trace_weight, self.trace, pace=EARLY_PACE)

    def loss(self, model: Any, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        return self.stages.loss(model, batch, progress)
