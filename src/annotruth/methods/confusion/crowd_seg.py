"""Learning from crowds: a network, and one small network for all raters that gives each a matrix for each image."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from annotruth.methods.base import Batch, DataSpec, Method
from annotruth.methods.registry import register
from annotruth.methods.warmup import CONSENSUS_SHARE, WarmUp, WarmUpModel, check_share
from annotruth.nn import EmbeddedAnnotators


@register
@dataclass(frozen=True)
class CrowdSeg(Method[WarmUpModel]):
    """One network serves all raters, told apart by a vector each, so that many of them cost little.

    It gives a rater's matrix for an image, the same at all pixels of it (the paper's CR Image). Truth and errors are
    learnt end to end, and what labels at hand amount to follows from both.

    Options
    -------
    warmup : share of the training in which raters are weighed by their consensus, before errors are learnt together
        with the truth
    """

    name = "crowd-seg"
    paper = "López-Pérez et al. 2024"
    summary = "a network, and a matrix per rater and image from one network for all raters"
    tasks = ("masks",)
    model_class = WarmUpModel
    learns_annotators = True
    annotator_rate = 0.2

    warmup: float = CONSENSUS_SHARE

    def __post_init__(self) -> None:
        check_share("warmup", self.warmup)

    @property
    def stages(self) -> WarmUp:
        return WarmUp(self.warmup)

    def annotator_model(self, spec: DataSpec) -> nn.Module:
        return EmbeddedAnnotators(spec.channels, spec.raters, spec.classes, spec.dims)

    def loss(self, model: WarmUpModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        return self.stages.loss(model, batch, progress)
