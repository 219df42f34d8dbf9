"""Scores from all pairs of masks: agreement between raters, and the energy distance between two sets of masks."""

from __future__ import annotations

from typing import Literal

import numpy as np

from annotruth.data.confusion import is_labelled
from annotruth.errors import InputError
from annotruth.metrics.registry import mean_of_known, metric
from annotruth.metrics.votes import Masks, count_classes, each_item
from annotruth.validation import one_of

BLOCK = 1 << 18
"""Pixels compared at a time: bounds memory, and keeps counts in float32 exact (below 2²⁴)."""


@metric("Dice between raters", "masks", "n_classes", axes=("rater", "rater"))
def pairwise_dice(masks: Masks, n_classes: int | None = None) -> np.ndarray:
    """Dice score between every two raters: the mean over the items both labelled, and over foreground classes.

    Parameters
    ----------
    masks : annotations, (items, raters, *spatial), or one (raters, *spatial) array per item; 255 = not labelled
    n_classes : by default as many as the annotations name, or as the labels show

    Returns
    -------
    (raters, raters), symmetric. Two empty masks score 1, so the diagonal is 1. Where two raters share no labelled
    pixel of any item, nan

    Examples
    --------
    >>> ann, bob = [[0, 1, 1, 0]], [[0, 1, 0, 0]]
    >>> pairwise_dice(np.array([[ann, bob]])).round(3)
    array([[1.   , 0.667],
           [0.667, 1.   ]])
    """
    n_classes = count_classes(masks, n_classes)
    total: np.ndarray | float = 0.0
    items: np.ndarray | int = 0
    for item in each_item(masks):
        score = _overlap(item, item, n_classes, "dice")
        total = total + np.nan_to_num(score)
        items = items + ~np.isnan(score)
    return np.divide(total, items, out=np.full(np.shape(items), np.nan), where=np.asarray(items) > 0)


@metric("GED", "samples", "masks", "n_classes", better="lower", range=(0.0, 2.0))
def ged(samples: Masks, references: Masks, n_classes: int = 2, *, overlap: Literal["dice", "iou"] = "dice") -> float:
    """Generalised energy distance between sampled masks and the raters' masks, the mean over items.

    2·E d(S, Y) − E d(S, S′) − E d(Y, Y′), where d = 1 − overlap of the foreground and each mean runs over all pairs,
    a mask with itself included. Samples that are just the raters' masks score exactly 0; lower is better.

    Parameters
    ----------
    samples : (items, samples, *spatial) class numbers, or one (samples, *spatial) array per item;
        ``model.sample(images, n).swapaxes(0, 1)`` gives such
    references : annotations, (items, raters, *spatial) class numbers, or one (raters, *spatial) array per item; a mask
        that is all 255 (missing) is left out
    overlap : what the distance is one minus of. Two empty masks are at distance 0

    Examples
    --------
    >>> references = np.array([[[[0, 1, 1, 0]], [[0, 1, 0, 0]]]])
    >>> ged(references, references)
    0.0
    >>> ged(np.zeros((1, 1, 1, 4), dtype=int), references) > 1
    True
    """
    return mean_of_known(ged_per_item(samples, references, n_classes, overlap=overlap))


@metric("GED", "samples", "masks", "n_classes", better="lower", range=(0.0, 2.0), axes=("item",))
def ged_per_item(
    samples: Masks, references: Masks, n_classes: int = 2, *, overlap: Literal["dice", "iou"] = "dice"
) -> np.ndarray:
    """Generalised energy distance of each item: (items,); nan for an item that nobody labelled. See :func:`ged`.

    Examples
    --------
    >>> ann, bob = [[0, 1, 1, 0]], [[0, 1, 0, 0]]
    >>> ged_per_item(np.array([[ann]]), np.array([[ann, bob]])).round(3)  # 2 · (0 + 1/3)/2 − 0 − (0 + 1/3)/2
    array([0.167])
    """
    one_of(overlap, ("dice", "iou"), "overlap")
    if len(samples) != len(references):
        raise InputError(f"There are samples of {len(samples)} items but references of {len(references)}.")
    return np.array(
        [_energy(s, y, n_classes, overlap) for s, y in zip(each_item(samples), each_item(references), strict=True)]
    )


def _energy(samples: np.ndarray, references: np.ndarray, n_classes: int, overlap: str) -> float:
    def mean_distance(a: np.ndarray, b: np.ndarray) -> float:
        return 1 - mean_of_known(_overlap(a, b, n_classes, overlap))

    cross = mean_distance(samples, references)
    return 2 * cross - mean_distance(samples, samples) - mean_distance(references, references)


def _overlap(a: np.ndarray, b: np.ndarray, n_classes: int, kind: str) -> np.ndarray:
    """Mean foreground overlap of each mask of a with each of b: (len(a), len(b)), nan where they share no pixel."""
    if a.shape[1:] != b.shape[1:]:
        raise InputError(f"Masks to compare differ in size: {a.shape[1:]} and {b.shape[1:]}.")
    a, b = a.reshape(len(a), -1), b.reshape(len(b), -1)
    shared = np.zeros((n_classes, len(a), len(b)))
    sizes, common = np.zeros_like(shared), np.zeros((len(a), len(b)))
    for start in range(0, a.shape[1], BLOCK):
        part_a, part_b = a[:, start : start + BLOCK], b[:, start : start + BLOCK]
        known_a = is_labelled(part_a, n_classes, "Masks").astype(np.float32)
        known_b = is_labelled(part_b, n_classes, "Masks").astype(np.float32)
        common += known_a @ known_b.T
        for label in range(1, n_classes):
            in_a, in_b = (part_a == label).astype(np.float32), (part_b == label).astype(np.float32)
            shared[label] += in_a @ in_b.T
            sizes[label] += in_a @ known_b.T + known_a @ in_b.T
    part, whole = (2 * shared, sizes) if kind == "dice" else (shared, sizes - shared)
    score = np.divide(part, whole, out=np.ones_like(whole), where=whole > 0)[1:].mean(axis=0)
    return np.where(common > 0, score, np.nan)
