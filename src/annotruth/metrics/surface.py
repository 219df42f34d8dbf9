"""How far apart the surfaces of masks lie: HD95 and surface Dice, in millimetres where the spacing is known.

MONAI has both, on torch, which stays out of this folder; these are its definitions on SciPy, and the tests hold one
against the other. The surface of a class are its pixels with a neighbour, along an axis, of another class or outside
the picture. Distances lie between the middles of pixels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.ndimage import binary_erosion, find_objects
from scipy.spatial import KDTree

from annotruth.data.annotations import Spacing, spacing_per_item
from annotruth.data.confusion import is_labelled
from annotruth.errors import InputError, shorten
from annotruth.metrics.overlap import mean_over_items, same_masks
from annotruth.metrics.registry import metric
from annotruth.validation import voxel_spacing

Spacings = Spacing | Sequence[Spacing | None] | None
"""Millimetres from pixel to pixel along each axis: one tuple for all items or one per item; None = 1 (pixels)."""
TOLERANCE = 1.0
"""Millimetres, or pixels, up to which surface Dice takes two surfaces for the same."""
ROUNDING = 1e-6
"""A distance that is greater than the tolerance by less than this share is a matter of rounding: 3 · 0.1 > 0.3."""


class SurfaceScores(NamedTuple):
    """Scores (items, classes) of surfaces; nan for the background, and for items without any known pixel."""

    hd95: np.ndarray
    surface_dice: np.ndarray


@metric(
    "HD95", "prediction", "truth", "n_classes", "spacing", better="lower", range=(0.0, math.inf), unit="mm", form=".2f"
)
def hd95(prediction: np.ndarray, truth: np.ndarray, n_classes: int = 2, spacing: Spacings = None) -> float:
    """95 % Hausdorff distance: the mean over items of the mean over foreground classes.

    The distance within which 95 % of the predicted surface lies from the true one, or of the true surface from the
    predicted one, whichever is greater.

    Parameters
    ----------
    prediction, truth : (items, *spatial) class numbers; pixels where either is 255 (missing) belong to no class
    n_classes : how many classes there are, background (class 0) among them
    spacing : millimetres from pixel to pixel along each axis, one tuple for all items or one per item. None: distances
        are in pixels

    Returns
    -------
    0 or more. A class in neither mask is at distance 0; one that is in a single mask is as far away as the picture is
    large, its diagonal, as the BraTS challenges have it (MONAI has no number for either). Items
    without any known pixel are left out; nan if there is no other.

    Examples
    --------
    >>> truth = np.array([[[0, 1, 0, 0, 0, 0]]])
    >>> prediction = np.array([[[0, 0, 0, 1, 0, 0]]])
    >>> hd95(prediction, truth), hd95(prediction, truth, spacing=(1.0, 0.5))
    (2.0, 1.0)
    """
    return mean_over_items(hd95_per_item(prediction, truth, n_classes, spacing))


@metric(
    "HD95", "prediction", "truth", "n_classes", "spacing", better="lower", range=(0.0, math.inf), unit="mm",
    axes=("item", "class"), form=".2f",
)  # fmt: skip
def hd95_per_item(
    prediction: np.ndarray, truth: np.ndarray, n_classes: int = 2, spacing: Spacings = None
) -> np.ndarray:
    """95 % Hausdorff distance of each item and class: (items, n_classes). See :func:`hd95`.

    The first column, the background's, is nan: its surface is that of all others and the picture's rim.

    Examples
    --------
    >>> hd95_per_item(np.array([[[0, 0, 0, 1, 0, 0]]]), np.array([[[0, 1, 0, 0, 0, 0]]]))
    array([[nan,  2.]])
    """
    return surface_scores(prediction, truth, n_classes, spacing).hd95


@metric("surface Dice", "prediction", "truth", "n_classes", "spacing")
def surface_dice(
    prediction: np.ndarray,
    truth: np.ndarray,
    n_classes: int = 2,
    spacing: Spacings = None,
    *,
    tolerance: float = TOLERANCE,
) -> float:
    """Surface Dice (normalised surface distance): the mean over items of the mean over foreground classes.

    The share of both surfaces, predicted and true, that lies within the tolerance of the other one.

    Parameters
    ----------
    prediction, truth, n_classes, spacing : as in :func:`hd95`
    tolerance : in millimetres, or in pixels where there is no spacing; what two good raters differ by is a good one

    Returns
    -------
    Between 0 and 1. A class in neither mask scores 1, one that is in a single mask 0. Items without any known pixel are
    left out; nan if there is no other.

    Examples
    --------
    >>> truth = np.array([[[0, 1, 0, 0, 0, 0]]])
    >>> prediction = np.array([[[0, 0, 0, 1, 0, 0]]])
    >>> surface_dice(prediction, truth), surface_dice(prediction, truth, tolerance=2)
    (0.0, 1.0)
    """
    return mean_over_items(surface_dice_per_item(prediction, truth, n_classes, spacing, tolerance=tolerance))


@metric("surface Dice", "prediction", "truth", "n_classes", "spacing", axes=("item", "class"))
def surface_dice_per_item(
    prediction: np.ndarray,
    truth: np.ndarray,
    n_classes: int = 2,
    spacing: Spacings = None,
    *,
    tolerance: float = TOLERANCE,
) -> np.ndarray:
    """Surface Dice of each item and class: (items, n_classes), nan for the background. See :func:`surface_dice`.

    Examples
    --------
    >>> surface_dice_per_item(np.array([[[0, 0, 1, 1, 0, 0]]]), np.array([[[0, 1, 1, 1, 1, 1]]])).round(3)
    array([[  nan, 0.857]])
    """
    return surface_scores(prediction, truth, n_classes, spacing, tolerance=tolerance).surface_dice


def surface_scores(
    prediction: np.ndarray,
    truth: np.ndarray,
    n_classes: int = 2,
    spacing: Spacings = None,
    *,
    tolerance: float = TOLERANCE,
) -> SurfaceScores:
    """Both scores of each item and class, for the price of one. See :func:`hd95` and :func:`surface_dice`.

    Examples
    --------
    >>> surface_scores(np.array([[[0, 0, 0, 1, 0, 0]]]), np.array([[[0, 1, 0, 0, 0, 0]]]))
    SurfaceScores(hd95=array([[nan,  2.]]), surface_dice=array([[nan,  0.]]))
    """
    prediction, truth = same_masks(prediction, truth)
    if not (math.isfinite(tolerance) and tolerance >= 0):
        raise InputError(f"The tolerance of surface Dice must be 0 or more, in mm or pixels, found {tolerance}.")
    n_items, rank = len(truth), truth.ndim - 1
    told = spacing_per_item(spacing, n_items)
    if told is None:
        told = [None] * n_items
    if len(told) != n_items:
        raise InputError(f"There are {n_items} items but {len(told)} spacings; give one for all, or one for each.")
    lacking = [str(item) for item, given in enumerate(told) if given is None]
    if 0 < len(lacking) < n_items:
        raise InputError(
            f"The spacing of item {shorten(lacking)} is not known, that of others is: millimetres and pixels do not "
            "compare. Give all of them, or none."
        )
    scores = SurfaceScores(np.full((n_items, n_classes), np.nan), np.full((n_items, n_classes), np.nan))
    for item in range(n_items):
        known = is_labelled(truth[item], n_classes, f"Item {item}, truth")
        known &= is_labelled(prediction[item], n_classes, f"Item {item}, prediction")
        if known.any():
            given = told[item]
            steps = (1.0,) * rank if given is None else voxel_spacing(given, rank, f"Item {item}")
            a, b = (np.where(known, masks[item], 0).astype(np.int32) for masks in (prediction, truth))
            scores.hd95[item, 1:], scores.surface_dice[item, 1:] = _score_item(a, b, n_classes, steps, tolerance)
    return scores


def _score_item(
    a: np.ndarray, b: np.ndarray, n_classes: int, spacing: Spacing, tolerance: float
) -> tuple[list[float], list[float]]:
    """HD95 and surface Dice of each foreground class of two masks (*spatial)."""
    # As the BraTS challenges count it, pixels and not the gaps between them: nothing within the picture is as far.
    diagonal = math.hypot(*(size * step for size, step in zip(a.shape, spacing)))
    distances, shares = [], []
    boxes_a, boxes_b = (find_objects(mask, max_label=n_classes - 1) for mask in (a, b))
    for label, (box_a, box_b) in enumerate(zip(boxes_a, boxes_b), start=1):
        if box_a is None or box_b is None:
            in_neither = box_a is None and box_b is None
            distances.append(0.0 if in_neither else diagonal)
            shares.append(float(in_neither))
            continue
        box = tuple(slice(min(i.start, j.start), max(i.stop, j.stop)) for i, j in zip(box_a, box_b))
        surface_a, surface_b = _surface(a[box] == label), _surface(b[box] == label)
        to_b, to_a = _distances(surface_a, surface_b, spacing), _distances(surface_b, surface_a, spacing)
        distances.append(float(max(np.percentile(to_b, 95), np.percentile(to_a, 95))))
        near = sum(np.count_nonzero(each <= tolerance * (1 + ROUNDING)) for each in (to_a, to_b))
        shares.append(near / (len(to_a) + len(to_b)))
    return distances, shares


def _surface(region: np.ndarray) -> np.ndarray:
    """Which pixels of a region (*spatial) have a neighbour outside of it: bool, the same shape."""
    return region & ~binary_erosion(region)


def _distances(start: np.ndarray, end: np.ndarray, spacing: Spacing) -> np.ndarray:
    """Distance of each pixel of a surface to the nearest one of another, in no particular order."""
    found = np.zeros(np.count_nonzero(start))  # 0 for those that both have, which need no search
    apart = np.argwhere(start & ~end) * np.array(spacing)
    if len(apart):
        # A tree over surfaces takes less time and memory than a distance transform of the whole picture.
        found[: len(apart)] = KDTree(np.argwhere(end) * np.array(spacing), leafsize=32).query(apart)[0]
    return found
