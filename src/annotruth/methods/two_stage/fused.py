"""Two stages: fuse the raters' labels without looking at images, then train a network on what comes out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from annotruth.data.annotations import Annotations
from annotruth.data.answers import Answers
from annotruth.errors import AnnotruthWarning
from annotruth.fusion import STAPLE, DawidSkene, SpatialSTAPLE
from annotruth.fusion.base import FusionEstimator
from annotruth.methods.base import DataSpec, Method, as_tensor, fused_answers, register
from annotruth.validation import MISSING_PIXEL


@register
@dataclass(frozen=True)
class Staple(Method):
    """STAPLE on each item by itself, as it is used in practice, then a network on the fused masks."""

    name = "staple"
    paper = "Warfield et al. 2004; two-stage baseline of Zhang et al. 2020"
    summary = "a network on STAPLE's masks"
    tasks = ("masks",)

    def estimator(self) -> FusionEstimator:
        """What fuses the masks of one item."""
        return STAPLE()

    def mask_targets(self, annotations: Annotations, index: int) -> Tensor:
        nobody = (annotations.item_masks(index) == MISSING_PIXEL).all(axis=0)
        with warnings.catch_warnings():
            # An item on which few labelled, or none errs, is no news here: the model says so of the whole data set.
            warnings.simplefilter("ignore", AnnotruthWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            fused = self.estimator().fit(annotations.take([index]))
        return as_tensor(np.where(nobody, np.uint8(MISSING_PIXEL), fused.predict_item(0))[None])

    def n_targets(self, shape: DataSpec) -> int:
        return 1


@register
@dataclass(frozen=True)
class FusedByDawidSkene(Method):
    """Dawid and Skene's model on the whole label table, then a network on what it takes for true."""

    name = "dawid-skene"
    paper = "Dawid and Skene 1979; two-stage baseline"
    summary = "a network on the labels that Dawid-Skene makes out"
    tasks = ("labels",)

    def label_targets(self, annotations: Annotations) -> Answers:
        return fused_answers(DawidSkene(), annotations)

    def n_targets(self, shape: DataSpec) -> int:
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
