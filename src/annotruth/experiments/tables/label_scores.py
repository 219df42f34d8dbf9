"""The columns of tables on class labels: what is measured of a trained classifier and of its raters."""

from __future__ import annotations

import numpy as np

from annotruth.experiments.core.experiment import Metric, Trained
from annotruth.metrics import accuracy, confusion_error, skill


def _accuracy(trained: Trained) -> float:
    held_out = trained.task.held_out
    return accuracy(trained.model.predict_proba(held_out).argmax(axis=1), held_out.truth)


def _confusion_error(trained: Trained) -> float | None:
    known = trained.task.confusion
    return None if known is None else confusion_error(trained.model.confusion_, known)


def _skill(trained: Trained) -> float | None:
    known = trained.task.confusion
    return None if known is None else float(skill(known).mean())


def _margin(trained: Trained) -> float | None:
    known = trained.task.confusion
    return None if known is None else dominance_margin(known)


def dominance_margin(confusion: np.ndarray) -> float:
    """By how much the mean of matrices (raters, classes, classes) is diagonally dominant; negative if it is not.

    The least, over all columns, of the diagonal entry less the largest other one.

    Examples
    --------
    >>> float(dominance_margin(np.array([[[0.9, 0.1], [0.5, 0.5]], [[0.9, 0.1], [0.7, 0.3]]])).__round__(3))
    0.3
    """
    mean = np.asarray(confusion).mean(axis=0)
    rival = np.where(np.eye(len(mean), dtype=bool), -np.inf, mean).max(axis=0)
    return float((np.diag(mean) - rival).min())


def _warned(trained: Trained) -> float:
    return float(bool(trained.model.warnings_))


ACCURACY = Metric("accuracy", "accuracy", _accuracy)
CM_ERROR = Metric("cm_error", "CM error", _confusion_error, better="lower")
SKILL = Metric("skill", "raters' skill", _skill, better="neither", form=".3f")
MARGIN = Metric("margin", "dominance", _margin, better="neither", form="+.2f")
WARNED = Metric("doubted", "warned", _warned, better="neither", form=".2f")
