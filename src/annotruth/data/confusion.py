"""Confusion matrices from labels. The one place where their orientation is decided: ``[true, observed]``."""

from __future__ import annotations

import numpy as np

from annotruth.errors import InputError, shorten
from annotruth.validation import MISSING_LABEL, MISSING_PIXEL, whole_numbers


def is_labelled(labels: np.ndarray, n_classes: int, where: str = "Labels") -> np.ndarray:
    """Tell which labels were given: bool, the same shape. Missing are -1, and 255 unless there are so many classes.

    Examples
    --------
    >>> is_labelled(np.array([0, 1, -1, 255]), n_classes=2)
    array([ True,  True, False, False])
    """
    labels = whole_numbers(labels, where)
    labelled = (labels >= 0) & (labels < n_classes)
    strange = ~labelled & (labels != MISSING_PIXEL)
    if not np.issubdtype(labels.dtype, np.unsignedinteger):
        strange &= labels != MISSING_LABEL
    if strange.any():
        values = [str(value) for value in np.unique(labels[strange])]
        raise InputError(
            f"{where}: label {shorten(values)} lies outside the {n_classes} classes (0 to {n_classes - 1})."
        )
    return labelled


def confusion_counts(truth: np.ndarray, observed: np.ndarray, n_classes: int, *, batch_axes: int = 0) -> np.ndarray:
    """Count how often a true class was given each label.

    Parameters
    ----------
    truth, observed : class numbers, shapes that broadcast; where either is missing (-1 or 255) nothing is counted
    n_classes : how many classes there are
    batch_axes : how many leading axes keep counts of their own

    Returns
    -------
    counts : (*batch, true, observed) int64

    Examples
    --------
    >>> confusion_counts(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 255]), n_classes=2)
    array([[1, 1],
           [0, 1]])
    """
    truth, observed = whole_numbers(truth, "Truth"), whole_numbers(observed, "Observed labels")
    counted = is_labelled(truth, n_classes, "Truth") & is_labelled(observed, n_classes, "Observed labels")
    truth, observed = np.broadcast_arrays(truth, observed)
    batch = counted.shape[:batch_axes]
    n_batch = int(np.prod(batch))
    pair = truth.astype(np.intp) * n_classes + observed
    pair += np.arange(n_batch).reshape(batch + (1,) * (counted.ndim - batch_axes)) * n_classes**2
    counts = np.bincount(pair[counted], minlength=n_batch * n_classes**2)
    return counts.reshape(*batch, n_classes, n_classes)


def normalise_rows(counts: np.ndarray) -> np.ndarray:
    """Make each row (…, true, observed) sum to 1; the row of a class that never occurs is nan.

    Examples
    --------
    >>> normalise_rows(np.array([[3, 1], [0, 0]]))
    array([[0.75, 0.25],
           [ nan,  nan]])
    """
    counts = np.asarray(counts, dtype=float)
    total = counts.sum(axis=-1, keepdims=True)
    return np.divide(counts, total, out=np.full(counts.shape, np.nan), where=total > 0)
