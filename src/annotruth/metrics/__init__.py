"""Scores: overlap of masks, recovery of annotators' confusion, agreement between raters. Pure functions."""

from annotruth.confusion import confusion_counts
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

__all__ = [
    "accuracy",
    "confusion_counts",
    "confusion_error",
    "confusion_matrix",
    "confusion_rmse",
    "dice",
    "dice_per_item",
    "expected_confusion",
    "iou",
    "iou_per_item",
    "mean_iou",
    "per_item_confusion",
    "skill",
    "soft_dice",
]
