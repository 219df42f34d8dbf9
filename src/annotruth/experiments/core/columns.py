"""The columns of tables: what is measured of a trained model, built on the records of metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from annotruth.data.annotations import Spacing
from annotruth.experiments.core.task import Trained
from annotruth.metrics import METRICS, Metric, dice, dice_per_item
from annotruth.metrics.registry import Better, Need
from annotruth.validation import MISSING_PIXEL, one_of

SWAPPED_BELOW = 0.3
"""A foreground Dice below this, where even majority vote does far better, means that classes were swapped or lost."""
SAMPLES = 16
"""Drawings per image that are compared with the raters' own."""

Score = Callable[[Trained], float | None]


@dataclass(frozen=True)
class Column:
    """A column of the table; the seconds of each training get one in any case.

    Attributes
    ----------
    name : its name in JSON;  title : at its head
    score : the number for a trained model, None where there is none
    better : which numbers are better
    form : how a number is written
    counted : the runs in which it is 1 are counted, where others are averaged
    series : columns with the same word here are drawn in one plot, a line for each row of the table
    """

    name: str
    title: str
    score: Score
    better: Better = "higher"
    form: str = ".4f"
    counted: bool = False
    series: str = ""


def column(metric: str, *, needs: tuple[Need, ...] = (), score: Score | None = None, **changes: Any) -> Column:
    """Make a column of a metric: title, direction and form are its record's, unless they are given.

    Parameters
    ----------
    metric : the name of its record
    needs : what the metric is fed with, if not with what its record says
    score : gives the number itself, where feeding the metric does not do
    changes : other fields of :class:`Column`

    Examples
    --------
    >>> found = column("dice", name="fused", title="Dice of fused masks", score=lambda trained: 0.5)
    >>> found.name, found.title, found.better, found.form
    ('fused', 'Dice of fused masks', 'higher', '.4f')
    """
    record = METRICS[one_of(metric, sorted(METRICS), "metric")]
    score = score or partial(_score, record, needs or record.needs)
    return replace(Column(record.name, record.heading, score, record.better, record.form), **changes)


def _score(record: Metric, needs: tuple[Need, ...], trained: Trained) -> float | None:
    """Feed a metric with what it needs; None where the data do not have it."""
    data = {need: FROM_DATA[need](trained) for need in needs if need in FROM_DATA}
    if any(value is None for value in data.values()):
        return None  # before the model is asked, which may take long
    return record.score(*(data[need] if need in data else FROM_MODEL[need](trained) for need in needs))


def soft_truth(trained: Trained) -> np.ndarray:
    """Where the held-out truth is foreground (items, *spatial), nan = unknown."""
    truth = trained.task.held_out.truth
    return np.where(truth == MISSING_PIXEL, np.nan, (truth > 0).astype(float))


def _prediction(trained: Trained) -> np.ndarray:
    held_out = trained.task.held_out
    if held_out.kind == "labels":
        return _probabilities(trained).argmax(axis=1)
    return trained.model.predict(held_out.images)


def _probabilities(trained: Trained) -> np.ndarray:
    held_out = trained.task.held_out
    return trained.model.predict_proba(held_out if held_out.kind == "labels" else held_out.images)


def _foreground(trained: Trained) -> np.ndarray:
    return 1 - _probabilities(trained)[:, 0]


def _spacing(trained: Trained) -> list[Spacing] | None:
    """Of every held-out item, None where any of them lacks it: means of millimetres and pixels say nothing."""
    held_out = trained.task.held_out
    told = [held_out.spacing(index) for index in range(len(held_out))]
    known = [spacing for spacing in told if spacing is not None]
    return known if len(known) == len(told) else None


def _samples(trained: Trained) -> np.ndarray:
    drawn = trained.model.sample(trained.task.held_out.images, SAMPLES, seed=trained.seed)
    return drawn.swapaxes(0, 1)


def _confusion(trained: Trained) -> np.ndarray:
    held_out = trained.task.held_out
    return trained.model.confusion_ if held_out.kind == "labels" else trained.model.confusion(held_out.images)


FROM_DATA: Mapping[Need, Callable[[Trained], Any]] = {
    "truth": lambda trained: trained.task.held_out.truth,
    "soft_truth": soft_truth,
    "masks": lambda trained: trained.task.held_out.masks,
    "answers": lambda trained: trained.task.train,
    "true_confusion": lambda trained: trained.task.confusion,
    "n_classes": lambda trained: len(trained.task.train.classes),
    "spacing": _spacing,
}
FROM_MODEL: Mapping[Need, Callable[[Trained], Any]] = {
    "prediction": _prediction,
    "probabilities": _probabilities,
    "foreground": _foreground,
    "samples": _samples,
    "confusion": _confusion,
}


def _dice_of_present(trained: Trained) -> float:
    truth, n_classes = trained.task.held_out.truth, len(trained.task.train.classes)
    scores = dice_per_item(_prediction(trained), truth, n_classes)[:, 1:]
    present = np.stack([(truth == c).any(axis=tuple(range(1, truth.ndim))) for c in range(1, n_classes)], 1)
    return float(np.mean([score[there].mean() for score, there in zip(scores, present) if there.any()]))


def _lowest_dice(trained: Trained) -> float:
    """Of any class of any held-out item: near 0 where two classes were taken for each other in one image only."""
    truth, n_classes = trained.task.held_out.truth, len(trained.task.train.classes)
    return float(np.nanmin(dice_per_item(_prediction(trained), truth, n_classes)[:, 1:]))


def _rater_dice(trained: Trained) -> float:
    held_out, n_classes = trained.task.held_out, len(trained.task.train.classes)
    raters = range(len(held_out.raters))
    return float(np.mean([dice(held_out.masks[:, r], held_out.truth, n_classes) for r in raters]))


def _swapped(trained: Trained) -> float:
    truth, n_classes = trained.task.held_out.truth, len(trained.task.train.classes)
    return float(dice(_prediction(trained), truth, n_classes) < SWAPPED_BELOW)


def _marked(trained: Trained) -> float:
    """Share of the pixels to learn from that anybody marked, either way."""
    train = trained.task.train
    both = (np.stack([train.item_masks(i), train.item_negatives(i)]) for i in range(len(train)))
    return float(np.mean([(drawn != MISSING_PIXEL).any(axis=(0, 1)).mean() for drawn in both]))


def _megabytes(trained: Trained) -> float | None:
    return trained.megabytes


def _parameters(trained: Trained) -> float:
    return float(sum(each.numel() for each in trained.model.module_.parameters() if each.requires_grad))


def _warned(trained: Trained) -> float:
    return float(bool(trained.model.warnings_))


DICE = column("dice")
DICE_OF_PRESENT = column("dice", title="Dice of the classes there", score=_dice_of_present)
LOWEST_DICE = column("dice", name="lowest_dice", title="lowest Dice of a class in an image", score=_lowest_dice)
RATER_DICE = column(
    "dice", name="rater_dice", title="raters' own Dice", score=_rater_dice, better="neither", form=".3f"
)
MIOU = column("miou")
SOFT_DICE = column("soft_dice")
HD95 = column("hd95")
SURFACE_DICE = column("surface_dice", title="surface Dice (1 mm)")
# Of data that do not tell their spacing, for which the two above have no number.
HD95_PIXELS = column("hd95", needs=("prediction", "truth", "n_classes"), name="hd95_pixels", title="HD95 (pixels)")
SURFACE_DICE_PIXELS = column(
    "surface_dice", needs=("prediction", "truth", "n_classes"), name="surface_dice_pixels",
    title="surface Dice (1 pixel)",
)  # fmt: skip
ECE = column("ece")
BRIER = column("brier")
CM_RMSE = column("cm_rmse")
GED = column("ged")
ACCURACY = column("accuracy")
CM_ERROR = column("cm_error")
SKILL = column("skill", needs=("true_confusion",), title="raters' skill", better="neither")
MARGIN = column("margin", needs=("true_confusion",), better="neither")
SWAPPED = Column("swapped", "swapped", _swapped, better="lower", counted=True)
MARKED = Column("marked", "pixels marked", _marked, better="neither", form=".3f")
MEGABYTES = Column("megabytes", "MB", _megabytes, better="neither", form=".0f")
PARAMETERS = Column("parameters", "parameters", _parameters, better="neither", form=",.0f")
WARNED = Column("doubted", "warned", _warned, better="neither", form=".2f")
