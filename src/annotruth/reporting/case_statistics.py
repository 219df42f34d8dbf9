"""The numbers behind the report on masks, from one pass over the items: nothing larger than one item is kept."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.metrics import dice_per_item, pairwise_disagreement
from annotruth.reporting.known_truth import KnownTruth, MaskTruth
from annotruth.reporting.model import Model, estimate
from annotruth.validation import MISSING_PIXEL


@dataclass(frozen=True)
class Case:
    """One item: how much its raters disagree and how close the estimate comes to the truth.

    Attributes
    ----------
    agreement : (raters,) foreground Dice of each rater's mask with the estimate, NaN = not labelled
    disagreement : chance that two raters differ on a pixel that any of them marked, a lone rater and the estimate;
        0 where nothing can differ
    dice : foreground Dice of the estimate with the truth, None = truth unknown
    """

    index: int
    name: str
    agreement: np.ndarray
    disagreement: float
    dice: float | None

    @property
    def labelled(self) -> np.ndarray:
        """(raters,) bool: who labelled this item."""
        return ~np.isnan(self.agreement)


@dataclass(frozen=True)
class CaseStatistics:
    """All cases in the items' order, and what holds for the whole data set.

    Attributes
    ----------
    shares : (classes,) how much of the pictures the estimate gives to each class
    missing_masks : share of item-rater pairs without a mask
    missing_pixels : share of unlabelled pixels inside the masks that were given
    truth : scores of the estimate against the truth, None = truth unknown
    """

    cases: tuple[Case, ...]
    shares: np.ndarray
    missing_masks: float
    missing_pixels: float
    truth: KnownTruth | None

    def most_disputed(self, count: int) -> list[Case]:
        """The cases with most disagreement, worst first."""
        return sorted(self.cases, key=lambda case: -case.disagreement)[:count]

    @property
    def agreement(self) -> np.ndarray:
        """(items, raters) foreground Dice with the estimate, NaN = not labelled."""
        return np.stack([case.agreement for case in self.cases])

    @property
    def mean_agreement(self) -> np.ndarray:
        """(raters,) mean foreground Dice of each rater's masks with the estimate, NaN = nothing labelled."""
        given = self.labelled_items
        return np.where(given > 0, np.nansum(self.agreement, axis=0) / np.maximum(given, 1), np.nan)

    @property
    def labelled_items(self) -> np.ndarray:
        """(raters,) how many items each labelled."""
        return (~np.isnan(self.agreement)).sum(axis=0)

    @property
    def dice(self) -> float | None:
        """Mean Dice with the truth over the cases where it is known."""
        known = [case.dice for case in self.cases if case.dice is not None]
        return float(np.mean(known)) if known else None


def case_statistics(model: Model, ann: Annotations) -> CaseStatistics:
    """Look at every item once."""
    n_classes = len(ann.classes)
    cases, shares = [], np.zeros(n_classes)
    given_pixels = all_pixels = given_masks = 0
    compared = MaskTruth(ann) if ann.has_truth else None
    for index, name in enumerate(ann.items):
        posterior = estimate(model, ann, index)
        masks = ann.item_masks(index)
        labels = posterior.argmax(axis=0).astype(np.uint8)
        agreement = dice_per_item(np.broadcast_to(labels, masks.shape), masks, n_classes)[:, 1:].mean(axis=1)
        known = math.nan
        if compared is not None:
            truth = ann.item_truth(index)
            scores = dice_per_item(labels[None], truth[None], n_classes)[0]
            compared.add(index, labels, scores, posterior, truth)
            known = float(scores[1:].mean())
        disagreement = float(np.nan_to_num(pairwise_disagreement(masks[None], n_classes, estimate=labels[None])[0]))
        cases.append(Case(index, name, agreement, disagreement, None if math.isnan(known) else known))
        shares += posterior.reshape(n_classes, -1).mean(axis=1, dtype=float) / len(ann)
        marked = (masks != MISSING_PIXEL).reshape(len(masks), -1).sum(axis=1)
        given_pixels += int(marked.sum())
        given_masks += int((marked > 0).sum())
        all_pixels += int((marked > 0).sum()) * labels.size
    return CaseStatistics(
        cases=tuple(cases),
        shares=shares,
        missing_masks=1 - given_masks / (len(ann) * len(ann.raters)),
        missing_pixels=1 - given_pixels / max(all_pixels, 1),
        truth=None if compared is None else compared.summary(),
    )
