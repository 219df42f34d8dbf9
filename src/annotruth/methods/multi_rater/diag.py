"""Diag: raters are trusted as far as their masks tell the diagnosis."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError, shorten
from annotruth.methods.base import Batch, DataSpec, Method, MethodModel
from annotruth.methods.protocols import FusesLabels, Prepares
from annotruth.methods.registry import register
from annotruth.nn import is_labelled
from annotruth.nn.prism import said, shares
from annotruth.validation import MISSING_PIXEL

FOLDS, FEWEST = 5, 2
"""Of the cross-validation; and how many items of each diagnosis a rater must have labelled to be judged."""
WITHOUT_DIAGNOSIS = "mrprism or max-mig, which weigh raters without one"
SHARPNESS = 4.0
"""How much more somebody counts whose masks make the true diagnosis e times as probable, as an exponent."""


class DiagnosedModel(MethodModel):
    """A network, and how much each rater's labels count."""

    weights: Tensor

    def __init__(self, truth: nn.Module, annotators: nn.Module, spec: DataSpec) -> None:
        super().__init__(truth, annotators)
        self.register_buffer("weights", torch.ones(spec.raters))


@register
@dataclass(frozen=True)
class Diag(Prepares, FusesLabels, Method[DiagnosedModel]):
    """A classifier diagnoses each item from a rater's mask; the better it does, the more the rater's masks count.

    A small form of the paper's, whose network finds the mask that is best to diagnose from.

    Options
    -------
    diagnosis : by item, {"case_1": "ill", "case_2": "healthy", …}, or the name of a JSON file that holds this
    """

    name = "diag"
    paper = "Wu et al. 2022 (Diag)"
    summary = "a network on labels weighted by how well they tell a known diagnosis"
    tasks = ("masks",)
    model_class = DiagnosedModel

    diagnosis: Mapping[str, Any] | str | None = None

    def check(self, annotations: Annotations) -> None:
        known = [name for name in annotations.items if name in self._diagnoses()]
        if len(known) < len(annotations):
            missing = [name for name in annotations.items if name not in self._diagnoses()]
            raise InputError(
                f"No diagnosis is given for {shorten(missing)}; diag needs one for every item. Give it, or use "
                f"{WITHOUT_DIAGNOSIS}."
            )
        if len({str(self._diagnoses()[name]) for name in known}) < 2:
            raise InputError(
                "All items have the same diagnosis: diag can tell nothing apart by it. Use " + WITHOUT_DIAGNOSIS + "."
            )

    def prepare(self, model: DiagnosedModel, annotations: Annotations) -> None:
        given = self._diagnoses()
        answers = np.array([str(given[name]) for name in annotations.items])
        found = np.array([diagnostic_value(annotations, rater, answers) for rater in range(len(annotations.raters))])
        judged = np.isfinite(found)
        found = np.where(judged, found, found[judged].mean() if judged.any() else 0.0)
        weights = np.exp(SHARPNESS * (found - found.max()))
        model.weights.copy_(torch.from_numpy(weights / weights.mean()))

    def loss(self, model: DiagnosedModel, batch: Batch, progress: float) -> tuple[Tensor, Tensor]:
        log_truth = model.log_truth(batch.images)
        anybody = is_labelled(batch.labels, log_truth.shape[1]).any(dim=1)
        target = self._weighted(model, batch.labels, log_truth.shape[1])
        loss = -((target * log_truth).sum(dim=1) * anybody).sum() / anybody.sum().clamp_min(1)
        return loss, loss.detach()

    def rater_confidences(self, model: DiagnosedModel, images: Tensor, raters: int, **options: Any) -> Tensor:
        """How much each rater counts beside the one who counts most, the same at every pixel."""
        weights = model.weights / model.weights.max()
        return weights.view(1, -1, *[1] * (images.ndim - 2)).expand(len(images), raters, *images.shape[2:])

    def fuse_labels(self, model: DiagnosedModel, images: Tensor, labels: Tensor, **options: Any) -> Tensor:
        """The weighted share of each class; the image has no say in it, but where nobody labelled."""
        truth = model.log_truth(images).exp()
        anybody = is_labelled(labels, truth.shape[1]).any(dim=1, keepdim=True)
        return torch.where(anybody, self._weighted(model, labels, truth.shape[1]), truth)

    @staticmethod
    def _weighted(model: DiagnosedModel, labels: Tensor, classes: int) -> Tensor:
        """Shares of the classes (batch, classes, *spatial) in labels (batch, raters, *spatial)."""
        weights = model.weights.view(1, -1, *[1] * (labels.ndim - 2)).expand(labels.shape)
        return shares(said(labels, classes), weights)

    def _diagnoses(self) -> Mapping[str, Any]:
        if self.diagnosis is None:
            raise InputError(
                "diag needs diagnosis=, the diagnosis of every item by name, or a JSON file with them. Where there is "
                f"none, use {WITHOUT_DIAGNOSIS}."
            )
        if not isinstance(self.diagnosis, str):
            return self.diagnosis
        try:
            return dict(json.loads(Path(self.diagnosis).read_text()))
        except (OSError, ValueError) as error:
            raise InputError(f"{self.diagnosis} holds no diagnoses as JSON ({error}).") from error


def diagnostic_value(annotations: Annotations, rater: int, answers: np.ndarray) -> float:
    """Mean log-probability of the right diagnosis, given this rater's masks of other items; nan if too few.

    The classifier sees each class's share of the picture and its extent along every axis. It does not see the image,
    from which it could tell the diagnosis whatever the rater drew.
    """
    rows, kept = [], []
    for index, answer in enumerate(answers):
        mask = annotations.item_masks(index)[rater]
        if (mask != MISSING_PIXEL).any():
            rows.append(_features(mask, len(annotations.classes)))
            kept.append(answer)
    counts = np.unique(kept, return_counts=True)[1]
    if len(counts) < 2 or counts.min() < FEWEST:
        return float("nan")
    folds = StratifiedKFold(int(min(FOLDS, counts.min())), shuffle=True, random_state=0)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    chances = cross_val_predict(model, np.array(rows), np.array(kept), cv=folds, method="predict_proba")
    right = chances[np.arange(len(kept)), np.searchsorted(np.unique(kept), kept)]
    return float(np.log(np.maximum(right, 1e-6)).mean())


def _features(mask: np.ndarray, classes: int) -> list[float]:
    found = []
    for number in range(1, classes):
        region = mask == number
        extent = [np.ptp(where) + 1 if len(where) else 0 for where in np.nonzero(region)]
        found += [float(region.mean()), *map(float, extent)]
    return found
