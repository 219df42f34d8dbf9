"""Coarse drawings: strokes that say where a class is, and strokes that say where it is not.

A positive drawing is a mask like any other, in which most pixels may be unmarked (255). A negative drawing is a second
mask of the same shape: the class that a pixel does *not* belong to, 255 where nothing was said.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from annotruth.errors import ContradictionWarning, InputError, shorten
from annotruth.validation import MISSING_PIXEL

NEGATIVE_FOLDER = ".negative"
"""Ends the name of the folder in which a rater's negative drawings lie: ``raters/ann.negative/``."""


def find_contradictions(positive: np.ndarray, negative: np.ndarray) -> np.ndarray:
    """Where one and the same class is said to be there and not to be there: bool, the shape of both.

    Examples
    --------
    >>> find_contradictions(np.array([1, 1, 0, 255]), np.array([1, 0, 255, 255]))
    array([ True, False, False, False])
    """
    return (positive == negative) & (positive != MISSING_PIXEL)


def drop_contradictions(positive: np.ndarray, negative: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Drawings of the same shape in which pixels that are contradicted are unmarked, and how many those were.

    Examples
    --------
    >>> positive, negative, count = drop_contradictions(np.array([1, 1, 0]), np.array([1, 0, 255]))
    >>> positive, negative, count
    (array([255,   1,   0]), array([255,   0, 255]), 1)
    """
    clash = find_contradictions(positive, negative)
    count = int(clash.sum())
    if not count:
        return positive, negative, 0
    return np.where(clash, MISSING_PIXEL, positive), np.where(clash, MISSING_PIXEL, negative), count


def settle_drawings(masks: Any, negatives: Any, items: Sequence[str], raters: Sequence[str]) -> tuple[Any, Any]:
    """Leave out what is contradicted in the drawings of all items, and warn of it.

    Parameters
    ----------
    masks, negatives : (items, raters, *spatial) arrays, or one (raters, *spatial) array per item
    """
    for item, positive, negative in zip(items, masks, negatives):
        if np.shape(positive) != np.shape(negative):
            raise InputError(
                f"Item {item}: positive drawings have the shape {np.shape(positive)}, negative ones "
                f"{np.shape(negative)}. Both must be (raters, *spatial), and 255 where nothing was drawn."
            )
    settled = [drop_contradictions(np.asarray(p), np.asarray(n)) for p, n in zip(masks, negatives)]
    count = sum(found for _, _, found in settled)
    if not count:
        return masks, negatives
    clash = [
        find_contradictions(np.asarray(p), np.asarray(n)).reshape(len(raters), -1) for p, n in zip(masks, negatives)
    ]
    by_rater = np.sum([one.sum(axis=1) for one in clash], axis=0)
    warn_contradictions([f"{name} {n}" for name, n in zip(raters, by_rater) if n], count)
    positive, negative = ([part[side] for part in settled] for side in (0, 1))
    return (np.stack(positive), np.stack(negative)) if isinstance(masks, np.ndarray) else (positive, negative)


def warn_contradictions(whose: Sequence[str], count: int, stacklevel: int = 4) -> None:
    """Say how many pixels are ignored because the same class was drawn there both ways."""
    warnings.warn(
        f"{count} pixels are marked both as a class and as not that class, and are ignored ({shorten(list(whose))}).",
        ContradictionWarning,
        stacklevel=stacklevel,
    )
