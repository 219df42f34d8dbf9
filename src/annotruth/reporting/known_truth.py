"""The report's scores against the known truth: overlap, surfaces and calibration, class by class.

Looking at surfaces and at every pixel's probabilities takes time, so of much data a part is looked at; which part
does not depend on what it shows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.metrics import METRICS, Calibration, accuracy, calibration_sums, surface_scores
from annotruth.metrics.registry import mean_of_known
from annotruth.metrics.surface import TOLERANCE
from annotruth.reporting.figures import reliability
from annotruth.reporting.words import short
from annotruth.validation import MISSING_LABEL, MISSING_PIXEL

MOST_SURFACES, MOST_SURFACE_PIXELS = 200, 1 << 26
"""Items whose surfaces are compared, and how many pixels these may have together."""
MOST_PIXELS = 1 << 16
"""Pixels of an item whose probabilities are compared with the truth."""
MOST_CLASSES = 30
"""Classes that are listed."""
LIKELIEST = "probability of the likeliest class"


@dataclass(frozen=True)
class Row:
    """A line of the table: its name, how many items have this class, and scores in the order of the columns."""

    name: str
    items: int | None
    scores: tuple[float | None, ...]


@dataclass(frozen=True)
class KnownTruth:
    """What the section shows.

    Attributes
    ----------
    columns : (metric, heading, arrow) of each score
    known : how many items have known truth
    chart : the reliability plot as a data URI
    unit : "mm" or "pixels";  tolerance : of surface Dice, in words
    surfaces : of how many items the surfaces were compared
    one_sided : how often, in these, a class was in the truth or the estimate alone
    sampled : whether probabilities were looked at in a part of the pixels only
    """

    columns: tuple[tuple[str, str, str], ...]
    rows: tuple[Row, ...]
    known: int
    chart: str
    unit: str = ""
    tolerance: str = ""
    surfaces: int = 0
    one_sided: int = 0
    sampled: bool = False


class MaskTruth:
    """Compares one item's estimate after the other with the truth; keeps sums and a few numbers per item.

    Examples
    --------
    >>> truth = np.array([[[0, 1, 1, 0]]], dtype=np.uint8)
    >>> ann = Annotations.from_masks(truth[:, None], classes=["background", "lesion"], truth=truth)
    >>> found = MaskTruth(ann)
    >>> found.add(0, truth[0], np.array([1.0, 1.0]), np.stack([1 - truth[0], truth[0]]), truth[0])
    >>> [row.name for row in found.summary().rows], found.summary().unit
    (['lesion', 'all'], 'pixels')
    """

    def __init__(self, ann: Annotations) -> None:
        self._ann, self._spacing = ann, [ann.spacing(index) for index in range(len(ann))]
        self._in_mm = all(spacing is not None for spacing in self._spacing)
        pixels = sum(math.prod(ann.shape(index)) for index in range(len(ann)))
        self._every = math.ceil(max(len(ann) / MOST_SURFACES, pixels / MOST_SURFACE_PIXELS))
        self._dice: list[np.ndarray] = []
        self._surface: list[np.ndarray] = []
        self._calibration: Calibration | None = None
        self._present, self._one_sided = np.zeros(len(ann.classes), dtype=int), 0
        self._sampled = False

    def add(self, index: int, labels: np.ndarray, dice: np.ndarray, posterior: np.ndarray, truth: np.ndarray) -> None:
        """Compare one item.

        Parameters
        ----------
        labels, truth : (*spatial) class numbers, estimated and true, 255 = unknown
        dice : (classes,) score of each class, nan if nothing of the item is known
        posterior : (classes, *spatial)
        """
        if np.isnan(dice).all():
            return
        n_classes = len(dice)
        in_truth = np.bincount(truth.reshape(-1), minlength=n_classes)[:n_classes] > 0
        self._dice.append(dice)
        self._present += in_truth
        if index % self._every == 0:
            spacing = self._spacing[index] if self._in_mm else None
            found = surface_scores(labels[None], truth[None], n_classes, spacing)
            self._surface.append(np.stack([found.hd95[0], found.surface_dice[0]]))
            known = labels[truth != MISSING_PIXEL]
            in_estimate = np.bincount(known, minlength=n_classes)[:n_classes] > 0
            self._one_sided += int((in_truth != in_estimate)[1:].sum())
        self._add_calibration(index, posterior.reshape(n_classes, -1), truth.reshape(-1))

    def _add_calibration(self, index: int, posterior: np.ndarray, truth: np.ndarray) -> None:
        if truth.size > MOST_PIXELS:
            drawn = np.random.default_rng(index).integers(0, truth.size, MOST_PIXELS)
            posterior, truth, self._sampled = posterior[:, drawn], truth[drawn], True
        sums = calibration_sums(posterior[None], truth[None])
        self._calibration = sums if self._calibration is None else self._calibration + sums

    def _chart(self, sums: Calibration) -> str:
        classes = self._ann.classes
        if len(classes) == 2:  # the one probability says it all, and has the whole axis for itself
            return reliability({"this model": sums.curve(label=1)}, f"probability of {short(classes[1])}")
        return reliability({"this model": sums.curve()}, LIKELIEST)

    def summary(self) -> KnownTruth | None:
        """What the report shows; None where no truth is known."""
        if self._calibration is None:
            return None
        dice = np.mean(self._dice, axis=0)
        hd95, surface = np.mean(self._surface, axis=0) if self._surface else np.full((2, len(dice)), np.nan)
        by_class = (dice, hd95, surface, self._calibration.ece_per_class, self._calibration.brier_per_class)
        listed = sorted(np.argsort(-self._present[1:], kind="stable")[:MOST_CLASSES] + 1)
        rows = [
            Row(self._ann.classes[label], int(self._present[label]), tuple(float(scores[label]) for scores in by_class))
            for label in listed
        ]
        means = [mean_of_known(scores[1:]) for scores in (dice, hd95, surface)]
        rows.append(Row("all", None, (*means, self._calibration.ece, self._calibration.brier)))
        unit = "mm" if self._in_mm else "pixels"
        return KnownTruth(
            columns=_columns({"dice_per_item": "Dice", "hd95": f"HD95 ({unit})", "surface_dice": "Surface Dice",
                              "ece": "ECE", "brier": "Brier"}),
            rows=tuple(rows),
            known=len(self._dice),
            chart=self._chart(self._calibration),
            unit=unit,
            tolerance=f"{TOLERANCE:g} {unit if self._in_mm else 'pixel'}",
            surfaces=len(self._surface),
            one_sided=self._one_sided,
            sampled=self._sampled,
        )  # fmt: skip


def label_truth(truth: np.ndarray, estimates: Mapping[str, np.ndarray]) -> KnownTruth | None:
    """Compare estimates of a label table; None where no truth is known.

    Parameters
    ----------
    truth : (items,) class numbers, -1 = unknown
    estimates : probabilities (items, classes) by what they are called

    Examples
    --------
    >>> label_truth(np.array([1, -1]), {"network": np.array([[0.2, 0.8], [0.5, 0.5]])}).rows[0].scores[0]
    1.0
    """
    known = int((truth != MISSING_LABEL).sum())
    if not known:
        return None
    sums = {name: calibration_sums(probabilities, truth) for name, probabilities in estimates.items()}
    return KnownTruth(
        columns=_columns({"accuracy": "Accuracy", "ece": "ECE", "brier": "Brier"}),
        rows=tuple(
            Row(name, None, (accuracy(estimates[name].argmax(axis=1), truth), found.ece, found.brier))
            for name, found in sums.items()
        ),
        known=known,
        chart=reliability({name: found.curve() for name, found in sums.items()}, LIKELIEST),
    )


def _columns(headings: dict[str, str]) -> tuple[tuple[str, str, str], ...]:
    return tuple((name, heading, METRICS[name].arrow) for name, heading in headings.items())
