"""How labellings are compared that may be the truth: how shortly they tell all labels, and how alike they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from annotruth.methods.foretelling import message_lengths
from annotruth.validation import MISSING_PIXEL


def tell_all_labels(
    foretold: list[np.ndarray],
    drawn: list[np.ndarray],
    labels: list[np.ndarray],
    others: list[np.ndarray],
    classes: int,
) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """How shortly a labelling tells all labels (items,), the labelling itself, and on which items its author slipped.

    It is told in two ways, which count alike. As drawn: the labelling by what is foretold of it, then the labels of all
    others by it, which favours those who err like others, pixel by pixel. As foretold: all labels by what the image
    gives away of it, in which nobody's chance is left, but no detail either.
    """
    blurred, _ = message_lengths(foretold, labels, classes, MISSING_PIXEL)
    known = [item != MISSING_PIXEL for item in drawn]
    if not any(item.any() for item in known):
        return 2 * blurred, foretold, np.zeros(len(foretold), dtype=bool)
    either = [np.where(*item) for item in zip(known, drawn, foretold)]
    itself, _ = message_lengths(foretold, [item[None] for item in drawn], classes, MISSING_PIXEL)
    by_it, slips = message_lengths(either, others, classes, MISSING_PIXEL, otherwise=foretold)
    full = [seen if slip else drew for drew, seen, slip in zip(either, foretold, slips)]
    return blurred + itself + by_it, full, slips


def names_classes_alike(labelling: list[np.ndarray], labels: list[np.ndarray], classes: int) -> bool:
    """Whether of each foreground class of a labelling, people say its name more often than any other's.

    A labelling whose classes have changed places tells all labels as shortly as the right one; only names tell them
    apart.

    Examples
    --------
    >>> drawn = [np.array([[0, 1, 2], [0, 1, 2], [0, 2, 1]])]
    >>> [names_classes_alike([one], drawn, classes=3) for one in drawn[0]]
    [True, True, False]
    """
    said = np.zeros((classes, classes), dtype=int)
    for taken, drawn in zip(labelling, labels):
        given = drawn != MISSING_PIXEL
        pairs = (np.broadcast_to(taken, drawn.shape)[given].astype(int) * classes) + drawn[given]
        said += np.bincount(pairs, minlength=classes**2).reshape(classes, classes)
    foreground = said[1:, 1:]
    return bool((foreground.diagonal() >= foreground.max(axis=1, initial=0)).all())


def labelling_overlap(one: Sequence[np.ndarray], other: Sequence[np.ndarray], classes: int) -> float:
    """Dice of two labellings, of all their pixels together: the mean over foreground classes that either has."""
    first, second = (np.concatenate([item.ravel() for item in each]) for each in (one, other))
    found = []
    for number in range(1, classes):
        size = np.count_nonzero(first == number) + np.count_nonzero(second == number)
        if size:
            found.append(2 * np.count_nonzero((first == number) & (second == number)) / size)
    return float(np.mean(found)) if found else 1.0


def separating_threshold(values: np.ndarray, low: np.ndarray) -> float:
    """The threshold below which those values lie that are said to be low, with as few exceptions as can be.

    Examples
    --------
    >>> separating_threshold(np.array([0.3, 0.9, 0.5, 0.8]), np.array([True, False, True, False]))
    0.8
    >>> separating_threshold(np.array([0.3, 0.9]), np.array([False, False]))
    0.0
    """
    thresholds = np.unique(np.append(values, 0.0))
    wrong = [np.count_nonzero((values < threshold) != low) for threshold in thresholds]
    return float(thresholds[np.argmin(wrong)])
