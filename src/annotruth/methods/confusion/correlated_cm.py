"""Errors that are correlated over the picture: each drawing is made in one mood, and its errors come together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from annotruth.methods.anchor import Anchored, AnchoredModel, Foretells
from annotruth.methods.base import Batch, DataSpec
from annotruth.methods.inference import in_rounds
from annotruth.methods.options import check_at_least
from annotruth.methods.protocols import Samples
from annotruth.methods.registry import register
from annotruth.nn import CorrelatedAnnotators, CorrelatedConfusion


@register
@dataclass(frozen=True)
class CorrelatedCM(Samples, Foretells):
    """As pixel-cm, but a rater who errs somewhere in a drawing errs likewise elsewhere in it.

    Scores of the matrices are Gaussian, with few factors that move all pixels of a drawing together, as the logits of
    stochastic segmentation networks are; so samples look like drawings.

    Options
    -------
    trace_weight : as of global-cm
    rank : in how many ways the errors of a drawing may come together
    samples : how many samples a drawing's likelihood is estimated from
    """

    name = "correlated-cm"
    paper = "Zhang et al. 2020, with the low-rank Gaussian of Monteiro et al. 2020"
    summary = "pixel-cm with errors that come together in a drawing"
    tasks = ("masks",)
    learns_annotators = True
    shrinks_trace = True
    annotator_rate = 0.1

    trace_weight: float | None = None
    rank: int = 4
    samples: int = 8

    def __post_init__(self) -> None:
        check_at_least(1, rank=self.rank, samples=self.samples)

    @property
    def foretells(self) -> bool:
        return True

    @property
    def stages(self) -> Anchored:
        return Anchored(self.trace_weight, "posterior", self.annotator_rate)

    def annotator_model(self, spec: DataSpec) -> nn.Module:
        return CorrelatedAnnotators(
            spec.channels, spec.raters, spec.classes, spec.dims, spec.network, self.rank, self.samples
        )

    def loss(self, model: Any, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        return self.stages.loss(model, batch, progress)

    def sample(
        self, model: AnchoredModel, images: Tensor, n: int, generator: torch.Generator, spec: DataSpec
    ) -> Tensor:
        who = in_rounds(spec.raters, n, generator).tolist()
        points = torch.randn(n, self.rank, generator=generator).to(images)
        log_truth = model.log_truth(images)
        confusion = cast("CorrelatedConfusion", model.confusion(images))
        return torch.stack([confusion.drawn(log_truth, rater, point) for rater, point in zip(who, points)]).exp()
