"""How labellings are compared that may be the truth: how shortly they tell all labels, and how alike they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from annotruth.methods.anchor.foretelling import Form, message_lengths, shortest_messages
from annotruth.validation import MISSING_PIXEL

DRAWN, OTHERS, FORETOLD = range(3)
"""Forms of a labelling: as drawn, as far as the others' drawings give it away, as foretold from the image."""


class Told(NamedTuple):
    """How shortly a labelling tells all labels.

    Attributes
    ----------
    lengths : (items,) nats
    labelling : an array (*spatial) per item, in the form that tells it most shortly
    forms : (items,) which form that is
    """

    lengths: np.ndarray
    labelling: list[np.ndarray]
    forms: np.ndarray


def tell_all_labels(
    foretold: list[np.ndarray],
    drawn: list[np.ndarray],
    others: list[np.ndarray],
    labels: list[np.ndarray],
    classes: int,
    rater: int | None = None,
) -> Told:
    """Tell a labelling by what is foretold of it, then all labels by it, each item in the form that is the shortest.

    Parameters
    ----------
    foretold : an array (*spatial) per item, of what the image gives away of it
    drawn, others : the same of what labels give away of it, if it is one rater's, their own and everybody else's; 255
        where these do not tell
    labels : (raters, *spatial) per item, 255 = missing
    rater : whose labelling it is; their labels are told by what is foretold of them
    """
    told, own = labels, np.zeros(len(labels))
    if rater is not None:
        told = [np.delete(item, rater, axis=0) for item in labels]
        own = message_lengths(foretold, [item[None] for item in drawn], classes, MISSING_PIXEL)
    forms, kinds = [], []
    for kind, known in ((DRAWN, drawn), (OTHERS, others)):
        there = [bool((item != MISSING_PIXEL).any()) for item in known]
        if any(there):
            cost = message_lengths(foretold, [item[None] for item in known], classes, MISSING_PIXEL)
            full = [np.where(item == MISSING_PIXEL, seen, item) for item, seen in zip(known, foretold)]
            forms.append(Form(full, told, np.where(there, cost + own * (kind == OTHERS), np.inf)))
            kinds.append(kind)
    forms.append(Form(foretold, told, own))
    kinds.append(FORETOLD)
    lengths, which = shortest_messages(forms, classes, MISSING_PIXEL)
    return Told(lengths, [forms[form].labelling[item] for item, form in enumerate(which)], np.array(kinds)[which])


def mean_overlap(labelling: list[np.ndarray], labels: list[np.ndarray], classes: int) -> float:
    """Dice of a labelling with everybody's labels, the mean over raters who gave any.

    Examples
    --------
    >>> mean_overlap([np.array([0, 1, 1])], [np.array([[0, 1, 1], [0, 0, 1], [255, 255, 255]])], classes=2)
    0.8333333333333333
    """
    found = []
    for rater in range(len(labels[0]) if labels else 0):
        given = [item[rater] != MISSING_PIXEL for item in labels]
        if any(known.any() for known in given):
            taken, said = zip(*((one[k], item[rater][k]) for one, item, k in zip(labelling, labels, given)))
            found.append(labelling_overlap(taken, said, classes))
    return float(np.mean(found)) if found else 1.0


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
