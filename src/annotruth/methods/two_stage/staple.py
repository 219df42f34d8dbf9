"""Two stages: STAPLE or Spatial STAPLE on each item's masks, without looking at images, then a network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from annotruth.data.annotations import Annotations
from annotruth.fusion import STAPLE, SpatialSTAPLE
from annotruth.fusion.base import FusionEstimator
from annotruth.methods.base import DataSpec, Method, MethodModel, as_tensor
from annotruth.methods.registry import register
from annotruth.methods.targets import quietly
from annotruth.validation import MISSING_PIXEL


@register
@dataclass(frozen=True)
class Staple(Method[MethodModel]):
    """STAPLE on each item by itself, as it is used in practice, then a network on the fused masks."""

    name = "staple"
    paper = "Warfield et al. 2004; two-stage baseline of Zhang et al. 2020"
    summary = "a network on STAPLE's masks"
    tasks = ("masks",)
    learns_overlap = True

    def estimator(self) -> FusionEstimator:
        """What fuses the masks of one item."""
        return STAPLE()

    def mask_targets(self, annotations: Annotations, index: int) -> Tensor:
        nobody = (annotations.item_masks(index) == MISSING_PIXEL).all(axis=0)
        with quietly():  # an item on which few labelled, or none errs, is no news: the model says so of all of them
            fused = self.estimator().fit(annotations.take([index]))
        return as_tensor(np.where(nobody, np.uint8(MISSING_PIXEL), fused.predict_item(0))[None])

    def n_targets(self, spec: DataSpec) -> int:
        return 1


@register
@dataclass(frozen=True)
class SpatialStaple(Staple):
    """As staple, with raters' errors that vary over the picture."""

    name = "spatial-staple"
    paper = "Asman and Landman 2012; two-stage baseline of Zhang et al. 2020"
    summary = "a network on Spatial STAPLE's masks"

    def estimator(self) -> FusionEstimator:
        return SpatialSTAPLE()
