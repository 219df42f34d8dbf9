"""Reports on fused labels: a fusion answers what the report asks of a trained model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError, shorten
from annotruth.fusion.base import FusionEstimator
from annotruth.fusion.registry import METHODS
from annotruth.reporting.model import Model


@dataclass(frozen=True)
class FusedRater:
    """What a fusion says of one rater."""

    confusion: np.ndarray
    skill: float
    interval: tuple[float, float]
    confusion_interval: np.ndarray
    labelled: int

    def confusion_map(self, image: np.ndarray, **told: Any) -> np.ndarray | None:
        """Nothing: a fusion has one matrix for all pixels."""
        return None


class FusedModel:
    """A fusion that was fitted, as a report sees it.

    Parameters
    ----------
    fused : of the annotations that the report is about
    warnings_ : what was warned of when it was fitted
    """

    def __init__(self, fused: FusionEstimator, warnings_: Sequence[str] = ()) -> None:
        self.fused, self.warnings_ = fused, list(warnings_)
        self.classes_, self.raters_ = tuple(fused.classes_), tuple(fused.raters_)
        self.method = next((name for name, made in METHODS.items() if made is type(fused)), type(fused).__name__)
        self.settings_: Mapping[str, Any] = fused.get_params()
        self.history_ = pd.DataFrame()

    @cached_property
    def annotators_(self) -> dict[str, FusedRater]:
        fused = self.fused
        low, high = fused.skill_interval()
        bounds = np.stack(fused.confusion_interval(), axis=1)
        return {
            name: FusedRater(
                fused.confusion_[rater], float(fused.skill_[rater]), (float(low[rater]), float(high[rater])),
                bounds[rater], int(fused.labelled_counts_[rater]),
            )
            for rater, name in enumerate(self.raters_)
            if fused.labelled_counts_[rater] > 0
        }  # fmt: skip

    def predict_proba(self, images: Annotations, **told: Any) -> np.ndarray:
        """The posterior (items, classes) of a label table."""
        self._check(images)
        return np.asarray(self.fused.predict_proba())

    def item_proba(self, ann: Annotations, index: int) -> np.ndarray:
        """The posterior (classes, *spatial) of one case with masks."""
        self._check(ann)
        return self.fused.predict_proba_item(index)

    def _check(self, ann: Annotations) -> None:
        if tuple(self.fused.items_) != ann.items:
            raise InputError(
                f"The fusion is of {shorten(self.fused.items_)} ({len(self.fused.items_)} items), but the annotations "
                f"have {shorten(ann.items)} ({len(ann)}): give those that were fused."
            )


def as_model(model: Model | FusionEstimator) -> Model:
    """What a report can be about: a trained model as it is, a fusion dressed as one."""
    return FusedModel(model) if isinstance(model, FusionEstimator) else model
