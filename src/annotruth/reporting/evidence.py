"""The numbers behind the report, gathered in one pass over the items: nothing larger than one item stays in memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd

from annotruth.data.annotations import Annotations
from annotruth.data.answers import class_name
from annotruth.errors import InputError, shorten
from annotruth.metrics import dice, dice_per_item
from annotruth.validation import MISSING_PIXEL


class Annotator(Protocol):
    """What a model has learnt of one rater."""

    @property
    def confusion(self) -> np.ndarray: ...
    @property
    def skill(self) -> float: ...
    @property
    def interval(self) -> tuple[float, float] | None: ...
    @property
    def confusion_interval(self) -> np.ndarray | None: ...
    @property
    def labelled(self) -> int: ...
    def confusion_map(self, image: np.ndarray) -> np.ndarray | None: ...


class Model(Protocol):
    """What the report asks of a trained model; ``annotruth.Segmenter`` and ``annotruth.Classifier`` are such."""

    @property
    def method(self) -> str: ...
    @property
    def classes_(self) -> Any: ...  # names, or a classifier's labels as they were given
    @property
    def raters_(self) -> tuple[str, ...]: ...
    @property
    def settings_(self) -> Mapping[str, Any]: ...
    @property
    def history_(self) -> pd.DataFrame: ...
    @property
    def warnings_(self) -> Sequence[str]: ...
    @property
    def annotators_(self) -> Mapping[str, Annotator]: ...
    def predict_proba(self, images: Any) -> np.ndarray: ...


def check_classes(model: Model, ann: Annotations) -> None:
    """Refuse annotations of other classes than the model's."""
    names = tuple(class_name(label) for label in model.classes_)
    if names != ann.classes:
        raise InputError(
            f"The model knows the classes {shorten(names, 10)} but the annotations have {shorten(ann.classes, 10)}; "
            "they must be the same, in the same order."
        )


@dataclass(frozen=True)
class Case:
    """One item: how much its raters disagree and how close the estimate comes to the truth.

    Attributes
    ----------
    agreement : (raters,) foreground Dice of each rater's mask with the estimate, NaN = not labelled
    disagreement : chance that two raters differ on a pixel that any of them marked
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
class Evidence:
    """All cases in the items' order, and what holds for the whole data set.

    Attributes
    ----------
    shares : (classes,) how much of the pictures the estimate gives to each class
    missing_masks : share of item-rater pairs without a mask
    missing_pixels : share of unlabelled pixels inside the masks that were given
    """

    cases: tuple[Case, ...]
    shares: np.ndarray
    missing_masks: float
    missing_pixels: float

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


def estimate(model: Model, image: np.ndarray) -> np.ndarray:
    """Give the posterior (classes, *spatial) for one image (channels, *spatial)."""
    return np.asarray(model.predict_proba(image[None])[0], dtype=np.float32)


def gather(model: Model, ann: Annotations) -> Evidence:
    """Look at every item once."""
    n_classes = len(ann.classes)
    cases, shares = [], np.zeros(n_classes)
    given_pixels = all_pixels = given_masks = 0
    for index, name in enumerate(ann.items):
        posterior, masks = estimate(model, ann.item_image(index)), ann.item_masks(index)
        labels = posterior.argmax(axis=0).astype(np.uint8)
        agreement = dice_per_item(np.broadcast_to(labels, masks.shape), masks, n_classes)[:, 1:].mean(axis=1)
        known = dice(labels[None], ann.item_truth(index)[None], n_classes) if ann.has_truth else math.nan
        cases.append(
            Case(index, name, agreement, disagreement(masks, labels, n_classes), None if math.isnan(known) else known)
        )
        shares += posterior.reshape(n_classes, -1).mean(axis=1, dtype=float) / len(ann)
        marked = (masks != MISSING_PIXEL).reshape(len(masks), -1).sum(axis=1)
        given_pixels += int(marked.sum())
        given_masks += int((marked > 0).sum())
        all_pixels += int((marked > 0).sum()) * labels.size
    return Evidence(
        cases=tuple(cases),
        shares=shares,
        missing_masks=1 - given_masks / (len(ann) * len(ann.raters)),
        missing_pixels=1 - given_pixels / max(all_pixels, 1),
    )


def disagreement(masks: np.ndarray, labels: np.ndarray, n_classes: int) -> float:
    """Chance that two raters differ on a pixel that any of them marked as foreground.

    Where no pixel has two raters, the estimate takes the place of the second.

    Parameters
    ----------
    masks : (raters, *spatial) labels, 255 = not labelled
    labels : (*spatial) the estimate
    n_classes : how many classes there are

    Examples
    --------
    >>> import numpy as np
    >>> masks = np.array([[[0, 1, 1]], [[0, 0, 1]]], dtype=np.uint8)
    >>> disagreement(masks, masks[0], 2)
    0.5
    """
    votes = np.stack([(masks == c).sum(axis=0) for c in range(n_classes)])
    voters = votes.sum(axis=0)
    if voters.max(initial=0) < 2:
        votes = votes + (labels == np.arange(n_classes).reshape(-1, *[1] * labels.ndim))
        voters = votes.sum(axis=0)
    disputed = (votes[1:].sum(axis=0) > 0) & (voters > 1)
    if not disputed.any():
        return 0.0
    votes, voters = votes[:, disputed].astype(float), voters[disputed].astype(float)
    alike = (votes * (votes - 1)).sum(axis=0) / (voters * (voters - 1))
    return float(1 - alike.mean())
