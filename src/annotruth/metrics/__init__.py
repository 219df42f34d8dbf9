"""Scores: overlap of masks, recovery of annotators' confusion, agreement between raters. Pure functions."""

from annotruth.data.confusion import confusion_counts
from annotruth.metrics.agreement import cohen_kappa, disagreement, fleiss_kappa, krippendorff_alpha
from annotruth.metrics.confusion import (
    accuracy,
    confusion_error,
    confusion_matrix,
    confusion_rmse,
    expected_confusion,
    per_item_confusion,
    skill,
)
from annotruth.metrics.overlap import dice, dice_per_item, iou, iou_per_item, mean_iou, soft_dice
from annotruth.metrics.pairs import ged, ged_per_item, pairwise_dice
from annotruth.metrics.votes import vote_counts

__all__ = [
    "accuracy",
    "cohen_kappa",
    "confusion_counts",
    "confusion_error",
    "confusion_matrix",
    "confusion_rmse",
    "dice",
    "dice_per_item",
    "disagreement",
    "expected_confusion",
    "fleiss_kappa",
    "ged",
    "ged_per_item",
    "iou",
    "iou_per_item",
    "krippendorff_alpha",
    "mean_iou",
    "pairwise_dice",
    "per_item_confusion",
    "skill",
    "soft_dice",
    "vote_counts",
]
