"""Which labelling of the pictures is the truth: the one that, foretold from the image, best foretells what all drew.

Raters who err alike outvote the others, so agreement alone cannot tell who is right. But a network learns from
anybody's drawings only what the image gives away of them, and from the true borders somebody's too large or too small
ones follow by a simple rule, while the way back is lost: what was drawn over cannot be told from what was there. So
labellings are compared by the length of the message that tells everybody's labels once the labelling is known, with
tables too small to hold the truth themselves: how often each rater says each class, by the labelling's class at a
pixel, by the class beyond the nearest border, and by the distance to it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import ndimage

REACH = 4
"""Pixels from a border up to which the distance matters: farther away, all pixels of a class are alike."""
UNSEEN = 0.5
"""Labels of each class added to what was counted, so that nothing is impossible (Krichevsky and Trofimov 1981)."""


def surroundings(labelling: np.ndarray, classes: int) -> np.ndarray:
    """Number every pixel by its class, the class beyond the nearest border, and how far away that is.

    Parameters
    ----------
    labelling : (*spatial) class numbers

    Returns
    -------
    (*spatial) numbers below ``classes² · REACH``

    Examples
    --------
    >>> surroundings(np.array([0, 0, 1, 1, 1, 1, 1]), classes=2) % REACH  # the distance less one, 3 at most
    array([1, 0, 0, 1, 2, 3, 3])
    """
    nearest = np.full(labelling.shape, np.inf)
    beyond = np.zeros(labelling.shape, dtype=int)
    for number in np.unique(labelling):
        distance = ndimage.distance_transform_edt(labelling != number)
        nearer = (distance < nearest) & (labelling != number)
        nearest[nearer], beyond[nearer] = distance[nearer], number
    steps = np.clip(np.ceil(nearest), 1, REACH).astype(int) - 1
    return (labelling.astype(int) * classes + beyond) * REACH + steps


def message_lengths(
    labellings: Sequence[np.ndarray], labels: Sequence[np.ndarray], classes: int, missing: int = 255
) -> np.ndarray:
    """How many nats it takes to tell all raters' labels of each item, once a labelling of all items is known.

    Tables are counted on all other items, so that none is told by itself.

    Parameters
    ----------
    labellings : an array (*spatial) of class numbers per item
    labels : an array (raters, *spatial) per item; those that are ``missing`` need not be told

    Returns
    -------
    (items,)

    Examples
    --------
    Who draws a pixel too much can be foretold from the truth, and the truth as well from the drawings, unless something
    was drawn over: here a gap between two objects.

    >>> truth = np.zeros((6, 20), dtype=int)
    >>> truth[:3, 4:8] = truth[:3, 9:13] = truth[3:, 4:13] = 1
    >>> over = ndimage.binary_dilation(truth).astype(int)
    >>> labels = [np.stack([truth, over])] * 5
    >>> by_truth, by_over = (message_lengths([told] * 5, labels, classes=2).sum() for told in (truth, over))
    >>> bool(by_truth < by_over)
    True
    """
    size = classes**3 * REACH  # of one rater's table
    met = []  # item, entry and count, of those entries that an item has: few of all, where classes are many
    for number, (labelling, drawn) in enumerate(zip(labellings, labels)):
        places = surroundings(labelling, classes).ravel() * classes
        for rater, said in enumerate(each.ravel() for each in drawn):
            given = said != missing
            entries, often = _tally(places[given] + said[given], size)
            met.append((np.full(len(entries), number), rater * size + entries, often))
    if not met:  # nobody's labels are to be told
        return np.zeros(len(labellings))
    item, entry, counts = (np.concatenate(each) for each in zip(*met))
    elsewhere = _totals(entry, counts) - counts + UNSEEN
    cell = entry // classes
    of_cell = _totals(cell, counts) - _totals(item * (cell.max(initial=0) + 1) + cell, counts) + UNSEEN * classes
    return -np.bincount(item, weights=counts * np.log(elsewhere / of_cell), minlength=len(labellings))


def _tally(entries: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Which numbers below a size there are, and how often."""
    if size > len(entries):
        return np.unique(entries, return_counts=True)
    counts = np.bincount(entries, minlength=size)
    return np.flatnonzero(counts), counts[counts > 0]


def _totals(keys: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The sum of the counts of all entries with the same key, for each entry."""
    _, place = np.unique(keys, return_inverse=True)
    return np.bincount(place.ravel(), weights=counts)[place.ravel()]


def first_is_shorter(first: np.ndarray, second: np.ndarray, errors: float = 1.0) -> bool:
    """Whether one labelling's messages (items,) are shorter than another's, beyond so many standard errors.

    Examples
    --------
    >>> first_is_shorter(np.array([1.0, 2.0, 3.0]), np.array([2.0, 3.1, 4.0]))
    True
    >>> first_is_shorter(np.array([1.0, 2.0, 3.0]), np.array([2.0, 1.0, 3.1]))
    False
    """
    saved = second - first
    return bool(saved.mean() > errors * saved.std(ddof=1) / np.sqrt(len(saved))) if len(saved) > 1 else False
