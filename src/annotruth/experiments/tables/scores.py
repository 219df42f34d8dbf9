"""The columns of tables: what is measured of a trained model. An experiment lists those it needs."""

from __future__ import annotations

import numpy as np

from annotruth.experiments.core.experiment import Metric, Trained
from annotruth.metrics import confusion_rmse, dice, dice_per_item, ged, mean_iou
from annotruth.validation import MISSING_PIXEL

SWAPPED_BELOW = 0.3
"""A foreground Dice below this, where even majority vote does far better, means that classes were swapped or lost."""
SAMPLES = 16
"""Drawings per image that are compared with the raters' own."""


def _classes(trained: Trained) -> int:
    return len(trained.task.train.classes)


def _dice(trained: Trained) -> float:
    held_out = trained.task.held_out
    return dice(trained.model.predict(held_out.images), held_out.truth, n_classes=_classes(trained))


def _dice_of_present(trained: Trained) -> float:
    truth = trained.task.held_out.truth
    scores = dice_per_item(trained.model.predict(trained.task.held_out.images), truth, _classes(trained))[:, 1:]
    present = np.stack([(truth == c).any(axis=tuple(range(1, truth.ndim))) for c in range(1, _classes(trained))], 1)
    return float(np.mean([score[there].mean() for score, there in zip(scores, present) if there.any()]))


def _mean_iou(trained: Trained) -> float:
    held_out = trained.task.held_out
    return mean_iou(trained.model.predict(held_out.images), held_out.truth, _classes(trained))


def _marked(trained: Trained) -> float:
    """Share of the pixels to learn from that anybody marked, either way."""
    train = trained.task.train
    both = (np.stack([train.item_masks(i), train.item_negatives(i)]) for i in range(len(train)))
    return float(np.mean([(drawn != MISSING_PIXEL).any(axis=(0, 1)).mean() for drawn in both]))


def _swapped(trained: Trained) -> float:
    return float(_dice(trained) < SWAPPED_BELOW)


def _confusion_rmse(trained: Trained) -> float | None:
    known = trained.task.confusion
    return None if known is None else confusion_rmse(trained.model.confusion(trained.task.held_out.images), known)


def _ged(trained: Trained) -> float:
    held_out = trained.task.held_out
    drawn = trained.model.sample(held_out.images, SAMPLES, seed=trained.seed)
    return ged(drawn.swapaxes(0, 1), held_out.masks, _classes(trained))


def _rater_dice(trained: Trained) -> float:
    held_out = trained.task.held_out
    raters = range(len(held_out.raters))
    return float(np.mean([dice(held_out.masks[:, r], held_out.truth, _classes(trained)) for r in raters]))


def _megabytes(trained: Trained) -> float | None:
    return trained.megabytes


DICE = Metric("dice", "foreground Dice", _dice)
DICE_OF_PRESENT = Metric("dice", "Dice of the classes there", _dice_of_present)
MIOU = Metric("miou", "mIoU", _mean_iou)
MARKED = Metric("marked", "pixels marked", _marked, better="neither", form=".3f")
CM_RMSE = Metric("cm_rmse", "CM RMSE", _confusion_rmse, better="lower")
GED = Metric("ged", "GED", _ged, better="lower")
SWAPPED = Metric("swapped", "swapped", _swapped, better="lower", counted=True)
RATER_DICE = Metric("rater_dice", "raters' own Dice", _rater_dice, better="neither", form=".3f")
MEGABYTES = Metric("megabytes", "MB", _megabytes, better="neither", form=".0f")
