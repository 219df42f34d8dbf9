"""How well annotators' confusion matrices were found. Everywhere ``[..., true, observed]``, rows summing to 1."""

from __future__ import annotations

import numpy as np

from annotruth.data.confusion import confusion_counts, is_labelled, normalise_rows
from annotruth.errors import InputError
from annotruth.metrics.registry import metric
from annotruth.validation import MISSING_PIXEL


def confusion_matrix(truth: np.ndarray, observed: np.ndarray, n_classes: int, *, batch_axes: int = 0) -> np.ndarray:
    """Share of each label among the pixels or items of each true class.

    Parameters
    ----------
    truth, observed : class numbers, shapes that broadcast; where either is missing (-1 or 255) nothing counts
    batch_axes : how many leading axes (items, say) get matrices of their own

    Returns
    -------
    (*batch, true, observed), rows sum to 1; the row of a class that does not occur in the truth is nan

    Examples
    --------
    >>> confusion_matrix(np.array([0, 0, 0, 0, 1]), np.array([0, 0, 0, 1, 1]), n_classes=3)
    array([[0.75, 0.25, 0.  ],
           [0.  , 1.  , 0.  ],
           [ nan,  nan,  nan]])
    """
    return normalise_rows(confusion_counts(truth, observed, n_classes, batch_axes=batch_axes))


@metric("CM RMSE", "confusion", "true_confusion", better="lower", name="cm_rmse")
def confusion_rmse(estimate: np.ndarray, truth: np.ndarray) -> float:
    """Root mean squared error of the entries of confusion matrices.

    Parameters
    ----------
    estimate, truth : (..., true, observed), any leading axes (items, raters). Rows that are nan in the truth (the
        class does not occur) are left out; nan if there are no others

    Examples
    --------
    >>> truth = np.array([[0.9, 0.1], [np.nan, np.nan]])
    >>> round(confusion_rmse(np.eye(2), truth), 3)
    0.1
    """
    difference = _known_rows(estimate, truth)
    return float(np.sqrt((difference**2).mean())) if difference.size else float("nan")


@metric("CM error", "confusion", "true_confusion", better="lower", range=(0.0, 2.0), name="cm_error")
def confusion_error(estimate: np.ndarray, truth: np.ndarray) -> float:
    """Error of confusion matrices as in Tanno et al. 2019: (1 / (R·L)) Σ_r ‖A_r − Â_r‖²_F.

    That is the squared distance of a row from the true row, averaged over raters and true classes. Rows that are
    nan in the truth are left out; nan if there are no others.

    Parameters
    ----------
    estimate, truth : (..., true, observed), usually (raters, classes, classes)

    Examples
    --------
    >>> round(confusion_error(np.eye(2)[None], np.array([[[0.9, 0.1], [0.0, 1.0]]])), 3)  # (0.1² + 0.1²) / 2
    0.01
    """
    difference = _known_rows(estimate, truth)
    return float((difference**2).sum(axis=-1).mean()) if difference.size else float("nan")


@metric("skill", "confusion", axes=("rater",), form=".3f")
def skill(confusion: np.ndarray) -> np.ndarray:
    """Skill of each rater: the mean of the diagonal, (...,) from (..., true, observed).

    Rows that are nan (classes the rater never met) are left out; nan if there are no others.

    Examples
    --------
    >>> skill(np.array([[[0.9, 0.1], [0.3, 0.7]], [[1.0, 0.0], [np.nan, np.nan]]]))
    array([0.8, 1. ])
    """
    diagonal = np.diagonal(np.asarray(confusion, dtype=float), axis1=-2, axis2=-1)
    found = ~np.isnan(diagonal)
    total = np.where(found, diagonal, 0.0).sum(axis=-1)
    count = found.sum(axis=-1)
    return np.divide(total, count, out=np.full(np.shape(total), np.nan), where=count > 0)


@metric("dominance", "confusion", range=(-1.0, 1.0), form="+.2f", name="margin")
def dominance_margin(confusion: np.ndarray) -> float:
    """By how much the mean of matrices (raters, classes, classes) is diagonally dominant; negative if it is not.

    The least, over all columns, of the diagonal entry less the largest other one.

    Examples
    --------
    >>> round(dominance_margin(np.array([[[0.9, 0.1], [0.5, 0.5]], [[0.9, 0.1], [0.7, 0.3]]])), 3)
    0.3
    """
    mean = np.asarray(confusion).mean(axis=0)
    rival = np.where(np.eye(len(mean), dtype=bool), -np.inf, mean).max(axis=0)
    return float((np.diag(mean) - rival).min())


@metric("accuracy", "prediction", "truth")
def accuracy(prediction: np.ndarray, truth: np.ndarray) -> float:
    """Share of labels that are right, where both are known: not -1, nor 255 in masks; nan if none is.

    Parameters
    ----------
    prediction, truth : class numbers of one shape; with more than two axes, or as uint8, they are masks

    Examples
    --------
    >>> accuracy(np.array([0, 1, 2, 2]), np.array([0, 1, 1, -1]))  # of three
    0.6666666666666666
    """
    prediction, truth = np.asarray(prediction), np.asarray(truth)
    if prediction.shape != truth.shape:
        raise InputError(f"The prediction has shape {prediction.shape} but the truth has {truth.shape}.")
    counted = _is_known(prediction) & _is_known(truth)
    return float((prediction[counted] == truth[counted]).mean()) if counted.any() else float("nan")


def per_item_confusion(posterior: np.ndarray, pixel_confusion: np.ndarray) -> np.ndarray:
    """Sum up each item's pixel-wise matrices: row i is averaged over pixels, weighted by how likely they are class i.

    Σ_px p̂_i·A[i,:] / Σ_px p̂_i. At a pixel only the row of its true class is identified by the labels; a plain mean
    would mix the other rows in.

    Parameters
    ----------
    posterior : (items, classes, *spatial), the estimated truth
    pixel_confusion : (items, raters, classes, classes, *spatial), [true, observed]; axes other than raters may be 1

    Returns
    -------
    (items, raters, classes, classes); a row is nan where the posterior gives its class no weight at all

    Examples
    --------
    >>> posterior = np.array([[[1.0, 0.0], [0.0, 1.0]]])  # one item, two pixels: first class 0, then class 1
    >>> good, poor = np.eye(2), np.full((2, 2), 0.5)
    >>> pixel_confusion = np.stack([good, poor], axis=-1)[None, None]
    >>> per_item_confusion(posterior, pixel_confusion)[0, 0]
    array([[1. , 0. ],
           [0.5, 0.5]])
    """
    posterior, pixel_confusion = np.asarray(posterior), np.asarray(pixel_confusion)
    items, n_classes, *spatial = posterior.shape
    shape = (items, *pixel_confusion.shape[1:2], n_classes, n_classes, *spatial)
    if pixel_confusion.ndim != len(shape) or any(
        have not in (1, want) for have, want in zip(pixel_confusion.shape, shape)
    ):
        raise InputError(
            f"A posterior (items, classes, *spatial) of shape {posterior.shape} does not go with pixel matrices "
            f"(items, raters, classes, classes, *spatial) of shape {pixel_confusion.shape}."
        )
    rows = np.broadcast_to(pixel_confusion, shape)
    weight = posterior.reshape(items, n_classes, -1)
    total = np.einsum("ntp,nrtop->nrto", weight, rows.reshape(*rows.shape[:4], -1), dtype=float, optimize=True)
    return _divide_rows(total, weight.sum(axis=-1, dtype=float)[:, None])


def expected_confusion(posterior: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Count each item's confusion with an uncertain truth: Σ_px p̂_i·1[label = j] / Σ_px p̂_i.

    Parameters
    ----------
    posterior : (items, classes, *spatial), the estimated truth
    observed : (items, raters, *spatial) class numbers; pixels a rater did not label (255) do not count

    Returns
    -------
    (items, raters, classes, classes), [true, observed]; a row is nan where the pixels that the rater labelled give
    its class no weight at all

    Examples
    --------
    >>> posterior = np.array([[[0.8, 0.2], [0.2, 0.8]]])  # one item, two pixels
    >>> observed = np.array([[[0, 1]]])
    >>> expected_confusion(posterior, observed)[0, 0]
    array([[0.8, 0.2],
           [0.2, 0.8]])
    """
    posterior, observed = np.asarray(posterior), np.asarray(observed)
    items, n_classes, *spatial = posterior.shape
    if observed.ndim < 3 or observed.shape != (items, observed.shape[1], *spatial):
        raise InputError(
            f"A posterior (items, classes, *spatial) of shape {posterior.shape} does not go with labels "
            f"(items, raters, *spatial) of shape {observed.shape}."
        )
    is_labelled(observed, n_classes, "Observed labels")
    weight = posterior.reshape(items, n_classes, -1).astype(float, copy=False)
    labels = observed.reshape(items, observed.shape[1], -1)
    total = np.stack([np.matmul(labels == label, weight.swapaxes(1, 2)) for label in range(n_classes)], axis=-1)
    return _divide_rows(total, total.sum(axis=-1))


def _known_rows(estimate: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Differences (rows, observed) in the rows that the truth knows."""
    estimate, truth = np.asarray(estimate, dtype=float), np.asarray(truth, dtype=float)
    if estimate.shape != truth.shape or truth.ndim < 2 or truth.shape[-1] != truth.shape[-2]:
        raise InputError(
            "Confusion matrices must be (..., classes, classes) and of one shape, "
            f"found {estimate.shape} and {truth.shape}."
        )
    there = ~np.isnan(truth).any(axis=-1)
    difference = (estimate - truth)[there]
    if np.isnan(difference).any():
        where = np.argwhere(there & np.isnan(estimate).any(axis=-1))[0].tolist()
        raise InputError(f"The estimated confusion matrix has no row {where} (nan), but the truth has one.")
    return difference


def _is_known(labels: np.ndarray) -> np.ndarray:
    is_mask = labels.dtype == np.uint8 or labels.ndim > 2
    return (labels >= 0) & (labels != MISSING_PIXEL) if is_mask else labels >= 0


def _divide_rows(total: np.ndarray, weight: np.ndarray) -> np.ndarray:
    weight = np.broadcast_to(weight[..., None], total.shape)
    return np.divide(total, weight, out=np.full(total.shape, np.nan), where=weight > 0)
