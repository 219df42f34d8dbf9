"""A confusion matrix of low rank per rater and pixel: for so many classes that full ones do not fit into memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from annotruth.errors import InputError
from annotruth.methods.base import Batch, DataSpec, Method
from annotruth.methods.confusion.pixel_cm import EARLY_PACE
from annotruth.methods.registry import register
from annotruth.methods.warmup import WarmUp, WarmUpModel, check_share
from annotruth.nn import LowRankAnnotators
from annotruth.validation import one_of


@register
@dataclass(frozen=True)
class PixelCMLowRank(Method[WarmUpModel]):
    """As pixel-cm, with matrices of low rank, so that many classes fit into memory.

    Options
    -------
    trace_weight, trace : as of global-cm
    warmup : share of the training in which raters are weighed by their consensus (``methods.warmup``)
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
    warmup: float = 0.4
    rater_features: tuple[str, ...] = ()
    rank: int = 1

    def __post_init__(self) -> None:
        one_of(self.trace, ("posterior", "plain"), "trace")
        check_share("warmup", self.warmup)
        if self.rank < 1:
            raise InputError(f"rank must be at least 1, not {self.rank}.")
        if self.rater_features:
            raise InputError("pixel-cm-lowrank takes no rater_features; pixel-cm and global-cm do.")

    def annotator_model(self, spec: DataSpec) -> nn.Module:
        return LowRankAnnotators(spec.channels, spec.raters, spec.classes, spec.dims, rank=self.rank, plan=spec.network)

    @property
    def stages(self) -> WarmUp:
        return WarmUp(self.warmup, self.trace_weight, self.trace, pace=EARLY_PACE)

    def loss(self, model: WarmUpModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        return self.stages.loss(model, batch, progress)
