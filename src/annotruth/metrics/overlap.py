"""How well masks overlap: Dice, intersection over union, and Dice of probability maps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from annotruth.data.confusion import confusion_counts
from annotruth.errors import InputError
from annotruth.metrics.registry import mean_of_known, metric


@metric("foreground Dice", "prediction", "truth", "n_classes")
def dice(prediction: np.ndarray, truth: np.ndarray, n_classes: int = 2, *, include_background: bool = False) -> float:
    """Dice score: the mean over items of the mean over foreground classes.

    Parameters
    ----------
    prediction, truth : (items, *spatial) class numbers; pixels where either is 255 (missing) do not count
    n_classes : how many classes there are, background (class 0) among them
    include_background : count class 0 as well. Background is easy and large, so this flatters; say so if you use it

    Returns
    -------
    Between 0 and 1. A class that is in neither mask of an item counts as found (1): the rater and the model agree
    that it is not there. Items without any known pixel are left out; nan if there is no other.

    Examples
    --------
    >>> truth = np.array([[[0, 1, 1, 0]], [[0, 0, 0, 0]]])
    >>> prediction = np.array([[[0, 1, 0, 0]], [[0, 0, 0, 0]]])
    >>> round(dice(prediction, truth), 3)  # the mean of 2/3 and 1
    0.833
    """
    return mean_over_items(dice_per_item(prediction, truth, n_classes), include_background)


@metric("Dice", "prediction", "truth", "n_classes", axes=("item", "class"))
def dice_per_item(prediction: np.ndarray, truth: np.ndarray, n_classes: int = 2) -> np.ndarray:
    """Dice score of each item and class: (items, n_classes), background first. See :func:`dice`.

    A class in neither mask scores 1; an item without any known pixel nan.

    Examples
    --------
    >>> dice_per_item(np.array([[[0, 1, 0, 0]]]), np.array([[[0, 1, 1, 0]]])).round(3)
    array([[0.8  , 0.667]])
    """
    shared, in_prediction, in_truth, empty = _sizes(prediction, truth, n_classes)
    return _ratio(2 * shared, in_prediction + in_truth, empty)


@metric("foreground IoU", "prediction", "truth", "n_classes")
def iou(prediction: np.ndarray, truth: np.ndarray, n_classes: int = 2, *, include_background: bool = False) -> float:
    """Intersection over union (Jaccard): the mean over items of the mean over foreground classes.

    Parameters and rules as in :func:`dice`.

    Examples
    --------
    >>> iou(np.array([[[0, 1, 0, 0]]]), np.array([[[0, 1, 1, 0]]]))
    0.5
    """
    return mean_over_items(iou_per_item(prediction, truth, n_classes), include_background)


@metric("IoU", "prediction", "truth", "n_classes", axes=("item", "class"))
def iou_per_item(prediction: np.ndarray, truth: np.ndarray, n_classes: int = 2) -> np.ndarray:
    """Intersection over union of each item and class: (items, n_classes), background first. See :func:`dice`.

    Examples
    --------
    >>> iou_per_item(np.array([[[0, 1, 0, 0]]]), np.array([[[0, 1, 1, 0]]])).round(3)
    array([[0.667, 0.5  ]])
    """
    shared, in_prediction, in_truth, empty = _sizes(prediction, truth, n_classes)
    return _ratio(shared, in_prediction + in_truth - shared, empty)


@metric("mIoU", "prediction", "truth", "n_classes", name="miou")
def mean_iou(prediction: np.ndarray, truth: np.ndarray, n_classes: int) -> float:
    """Mean intersection over union (mIoU) as segmentation benchmarks define it.

    Pixels of all items are pooled first, then each class scored, then the mean taken over all classes, background
    included. Classes in neither prediction nor truth anywhere are left out; nan if nothing is known.

    Parameters
    ----------
    prediction, truth : (items, *spatial) class numbers; pixels where either is 255 (missing) do not count

    Examples
    --------
    >>> round(mean_iou(np.array([[[0, 1, 0, 0]]]), np.array([[[0, 1, 1, 0]]]), n_classes=3), 3)  # of 2/3 and 1/2
    0.583
    """
    prediction, truth = same_masks(prediction, truth)
    counts = confusion_counts(truth, prediction, n_classes)
    shared = np.diagonal(counts)
    union = counts.sum(axis=0) + counts.sum(axis=1) - shared
    return float((shared[union > 0] / union[union > 0]).mean()) if counts.any() else float("nan")


@metric("soft Dice", "foreground", "soft_truth")
def soft_dice(
    probability: np.ndarray, soft_truth: np.ndarray, thresholds: Sequence[float] = (0.1, 0.3, 0.5, 0.7, 0.9)
) -> float:
    """Dice of probability maps: both are cut at each threshold, and the mean taken over thresholds and items.

    Parameters
    ----------
    probability : (items, *spatial), the foreground's probability
    soft_truth : (items, *spatial), the share of raters who drew foreground, say
    thresholds : a pixel is foreground where its value lies above

    Returns
    -------
    Between 0 and 1. Two empty masks score 1. Pixels where either map is nan do not count; an item with no other is
    left out.

    Examples
    --------
    >>> soft_dice(np.array([[[0.2, 0.8]]]), np.array([[[0.2, 0.8]]]))
    1.0
    >>> soft_dice(np.array([[[0.0, 0.6]]]), np.array([[[0.0, 1.0]]]))  # the thresholds 0.7 and 0.9 find nothing
    0.6
    """
    probability, soft_truth = same_masks(probability, soft_truth)
    counted = np.isfinite(probability) & np.isfinite(soft_truth)
    outside = counted & ((np.minimum(probability, soft_truth) < 0) | (np.maximum(probability, soft_truth) > 1))
    if outside.any():
        raise InputError(f"Item {np.argwhere(outside)[0, 0]}: probabilities must lie between 0 and 1.")
    values = np.where(counted, probability, -1.0), np.where(counted, soft_truth, -1.0)
    pixels = tuple(range(1, counted.ndim))
    nothing = ~counted.any(axis=pixels)
    scores = []
    for threshold in thresholds:
        a, b = values[0] > threshold, values[1] > threshold
        scores.append(_ratio(2 * (a & b).sum(axis=pixels), a.sum(axis=pixels) + b.sum(axis=pixels), nothing))
    return mean_of_known(np.mean(scores, axis=0))


def same_masks(prediction: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give two arrays (items, *spatial) as such, refusing different sizes."""
    prediction, truth = np.asarray(prediction), np.asarray(truth)
    if prediction.shape != truth.shape:
        raise InputError(f"The prediction has shape {prediction.shape} but the truth has {truth.shape}.")
    if prediction.ndim < 3:
        raise InputError(
            f"Give masks as (items, *spatial), found shape {truth.shape}; write mask[None] for a single one."
        )
    return prediction, truth


def _sizes(
    prediction: np.ndarray, truth: np.ndarray, n_classes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Pixels shared, predicted and true, each (items, classes); and which items have none, (items, 1)."""
    prediction, truth = same_masks(prediction, truth)
    counts = confusion_counts(truth, prediction, n_classes, batch_axes=1)
    shared = np.diagonal(counts, axis1=1, axis2=2)
    return shared, counts.sum(axis=1), counts.sum(axis=2), counts.sum(axis=(1, 2))[:, None] == 0


def _ratio(part: np.ndarray, whole: np.ndarray, unknown: np.ndarray) -> np.ndarray:
    """Divide, with 1 where there is nothing to find and nothing was found, nan where nothing is known."""
    score = np.divide(part, whole, out=np.ones(np.shape(whole)), where=whole > 0)
    return np.where(unknown, np.nan, score)


def mean_over_items(per_item: np.ndarray, include_background: bool = False) -> float:
    """Mean over items of the mean over classes, of scores (items, classes); items that are nan are left out."""
    return mean_of_known(per_item[:, 0 if include_background else 1 :].mean(axis=1))
