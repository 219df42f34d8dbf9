"""What is known before any label is seen: class frequencies and earlier labels of the raters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from annotruth.errors import InputError, shorten
from annotruth.validation import one_of

ConfusionPrior = np.ndarray | Mapping[str, np.ndarray] | None


def check_prior(prior: str | np.ndarray, classes: Sequence[str]) -> None:
    """Refuse a class prior that is neither a known word nor a distribution over the classes.

    Examples
    --------
    >>> check_prior(np.array([0.9, 0.1]), ["background", "lesion"])
    """
    if isinstance(prior, str):
        one_of(prior, ("estimated", "votes"), "prior")
        return
    values = np.asarray(prior, dtype=np.float64)
    if values.shape != (len(classes),):
        raise InputError(
            f"The prior needs one number for each of the {len(classes)} classes ({shorten(list(classes))})."
        )
    if not (values >= 0).all() or abs(values.sum() - 1) > 1e-6:
        raise InputError(f"The prior must hold probabilities that sum to 1, found {values.tolist()}.")


def pseudo_counts(prior: ConfusionPrior, raters: Sequence[str], n_classes: int) -> np.ndarray | None:
    """Earlier labels as an array (raters, classes, classes), [true, observed].

    Parameters
    ----------
    prior : (classes, classes) for every rater, (raters, classes, classes), or (classes, classes) by rater name

    Examples
    --------
    >>> pseudo_counts({"bob": np.eye(2)}, ["ann", "bob"], 2).sum(axis=(1, 2))
    array([0., 2.])
    """
    if prior is None:
        return None
    shape = (len(raters), n_classes, n_classes)
    counts = np.zeros(shape)
    if isinstance(prior, Mapping):
        strangers = sorted(set(map(str, prior)) - set(raters))
        if strangers:
            raise InputError(f"confusion_prior names raters without labels: {shorten(strangers)}.")
        given = [
            (index, np.asarray(prior[name], dtype=np.float64)) for index, name in enumerate(raters) if name in prior
        ]
    else:
        array = np.asarray(prior, dtype=np.float64)
        if array.ndim == 2:
            array = np.broadcast_to(array, (len(raters), *array.shape))
        if array.ndim != 3 or len(array) != len(raters):
            raise InputError(f"confusion_prior must have the shape (classes, classes) or {shape}, not {array.shape}.")
        given = list(enumerate(array))
    for index, matrix in given:
        if matrix.shape != shape[1:] or not np.isfinite(matrix).all() or (matrix < 0).any():
            raise InputError(
                f"confusion_prior of rater {raters[index]}: {n_classes}×{n_classes} counts of at least 0 are needed."
            )
        counts[index] = matrix
    return counts
