"""Scores: masks and probabilities against the truth, annotators' confusion, agreement between raters. Pure functions.

Every metric has a record in ``METRICS``, from which tables, plots and the report know its title, which way is better
and how its numbers are written. Every module of this folder is found, and a metric registered in it is a name here.
"""

from importlib import import_module
from pkgutil import iter_modules

from annotruth.data.confusion import confusion_counts
from annotruth.metrics.agreement import (
    cohen_kappa,
    disagreement,
    fleiss_kappa,
    krippendorff_alpha,
    pairwise_disagreement,
    vote_entropy,
)
from annotruth.metrics.calibration import (
    Calibration,
    Reliability,
    brier_per_class,
    brier_score,
    calibration_sums,
    ece_per_class,
    expected_calibration_error,
    reliability_curve,
)
from annotruth.metrics.confusion import (
    accuracy,
    confusion_error,
    confusion_matrix,
    confusion_rmse,
    dominance_margin,
    expected_confusion,
    per_item_confusion,
    skill,
)
from annotruth.metrics.overlap import dice, dice_per_item, iou, iou_per_item, mean_iou, soft_dice
from annotruth.metrics.pairs import ged, ged_per_item, pairwise_dice
from annotruth.metrics.registry import METRICS, Metric, find_metric, metric
from annotruth.metrics.surface import hd95, hd95_per_item, surface_dice, surface_dice_per_item, surface_scores
from annotruth.metrics.votes import vote_counts

__all__ = [
    "METRICS",
    "Calibration",
    "Metric",
    "Reliability",
    "accuracy",
    "brier_per_class",
    "brier_score",
    "calibration_sums",
    "cohen_kappa",
    "confusion_counts",
    "confusion_error",
    "confusion_matrix",
    "confusion_rmse",
    "dice",
    "dice_per_item",
    "disagreement",
    "dominance_margin",
    "ece_per_class",
    "expected_calibration_error",
    "expected_confusion",
    "find_metric",
    "fleiss_kappa",
    "ged",
    "ged_per_item",
    "hd95",
    "hd95_per_item",
    "iou",
    "iou_per_item",
    "krippendorff_alpha",
    "mean_iou",
    "metric",
    "pairwise_dice",
    "pairwise_disagreement",
    "per_item_confusion",
    "reliability_curve",
    "skill",
    "soft_dice",
    "surface_dice",
    "surface_dice_per_item",
    "surface_scores",
    "vote_counts",
    "vote_entropy",
]

for _module in sorted(found.name for found in iter_modules(__path__)):
    import_module(f"{__name__}.{_module}")
for _record in METRICS.values():  # those of a new file, which is named nowhere above; it may have its function's name
    globals()[_record.function.__name__] = _record.function
