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

REACH, STEPS = 4, 3
"""Pixels from a border up to which the distance matters, and in how many steps a pixel is told. Farther away, all
pixels of a class are alike; neighbours across a corner are 1.4 pixels apart, which is not as near as beside each
other."""
LEVELS = (REACH - 1) * STEPS + 2
"""Distances that are told apart: from 1 to the reach, and all beyond."""
UNSEEN = 0.5
"""Labels of each class added to what was counted, so that nothing is impossible (Krichevsky and Trofimov 1981)."""
ROUNDS = 3
"""How often slips are sought by what was counted without those found before."""


def surroundings(labelling: np.ndarray, classes: int) -> np.ndarray:
    """Number every pixel by its class, the class beyond the nearest border, and how far away that is.

    Parameters
    ----------
    labelling : (*spatial) class numbers

    Returns
    -------
    (*spatial) numbers below ``classes² · LEVELS``

    Examples
    --------
    >>> surroundings(np.array([0, 0, 1, 1, 1, 1, 1, 1]), classes=2) % LEVELS  # in thirds of a pixel, beyond the first
    array([ 3,  0,  0,  3,  6,  9, 10, 10])
    """
    nearest = np.full(labelling.shape, np.inf)
    beyond = np.zeros(labelling.shape, dtype=int)
    for number in np.unique(labelling):
        distance = ndimage.distance_transform_edt(labelling != number)
        nearer = (distance < nearest) & (labelling != number)
        nearest[nearer], beyond[nearer] = distance[nearer], number
    steps = np.clip(np.ceil((nearest - 1) * STEPS), 0, LEVELS - 1).astype(int)
    return (labelling.astype(int) * classes + beyond) * LEVELS + steps


def message_lengths(
    labellings: Sequence[np.ndarray],
    labels: Sequence[np.ndarray],
    classes: int,
    missing: int = 255,
    otherwise: Sequence[np.ndarray] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """How many nats it takes to tell all raters' labels of each item, once a labelling of all items is known.

    Tables are counted on all other items, so that none is told by itself.

    Parameters
    ----------
    labellings : an array (*spatial) of class numbers per item
    labels : an array (raters, *spatial) per item; those that are ``missing`` need not be told
    otherwise : labellings that stand in for those of items where they tell the labels more shortly, by the same tables;
        which items these are is told, too. So a slip of somebody who is right on most items does not count for more
        than one item

    Returns
    -------
    (items,) nats; (items,) bool, where the labelling was a slip

    Examples
    --------
    Who draws a pixel too much can be foretold from the truth, and the truth as well from the drawings, unless something
    was drawn over: here a gap between two objects.

    >>> truth = np.zeros((6, 20), dtype=int)
    >>> truth[:3, 4:8] = truth[:3, 9:13] = truth[3:, 4:13] = 1
    >>> over = ndimage.binary_dilation(truth).astype(int)
    >>> labels = [np.stack([truth, over])] * 5
    >>> by_truth, by_over = (message_lengths([told] * 5, labels, classes=2)[0].sum() for told in (truth, over))
    >>> bool(by_truth < by_over)
    True
    >>> blank = np.zeros_like(truth)
    >>> message_lengths([truth] * 4 + [blank], labels, classes=2, otherwise=[truth] * 5)[1]
    array([False, False, False, False,  True])
    """
    first = [_tally(*item, classes, missing) for item in zip(labellings, labels)]
    second = first if otherwise is None else [_tally(*item, classes, missing) for item in zip(otherwise, labels)]
    entries = np.unique(np.concatenate([entry for entry, _ in first + second] or [np.zeros(0, int)]))
    slips = np.zeros(len(first), dtype=bool)
    if not len(entries):  # nobody's labels are to be told
        return np.zeros(len(first)), slips
    _, cell = np.unique(entries // classes, return_inverse=True)
    by_first = _counts(first, entries)
    if otherwise is None:
        return _nats(by_first, by_first, cell, classes), slips
    by_second = _counts(second, entries)
    for _ in range(ROUNDS):
        kept = np.where(slips[:, None], by_second, by_first)
        as_drawn, as_else = (_nats(each, kept, cell, classes) for each in (by_first, by_second))
        slips = as_else < as_drawn
    often = (slips.sum() + UNSEEN) / (len(slips) + 2 * UNSEEN)
    return np.where(slips, as_else - np.log(often), as_drawn - np.log(1 - often)), slips


def _tally(labelling: np.ndarray, drawn: np.ndarray, classes: int, missing: int) -> tuple[np.ndarray, np.ndarray]:
    """How often each rater says each class at each kind of place of one item: numbers of what there is, and counts."""
    places = surroundings(labelling, classes).ravel()
    rater = np.arange(len(drawn))[:, None] * (classes**2 * LEVELS)
    said = drawn.reshape(len(drawn), places.size)
    entries = (rater + places) * classes + np.where(said == missing, 0, said)
    return np.unique(entries[said != missing], return_counts=True)


def _counts(tallies: Sequence[tuple[np.ndarray, np.ndarray]], entries: np.ndarray) -> np.ndarray:
    """Counts of all items: (items, entries)."""
    counts = np.zeros((len(tallies), len(entries)))
    for row, (entry, often) in zip(counts, tallies):
        row[np.searchsorted(entries, entry)] = often
    return counts


def _nats(told: np.ndarray, counted: np.ndarray, cell: np.ndarray, classes: int) -> np.ndarray:
    """Nats (items,) that it takes to tell counts (items, entries) by what was counted on all other items.

    ``cell`` (entries,) numbers the rater and place of an entry, at which one of the classes is said.
    """
    elsewhere = counted.sum(axis=0) - counted
    starts = np.flatnonzero(np.diff(cell, prepend=-1))  # entries are sorted, so that those of a cell stand together
    of_cell = np.add.reduceat(elsewhere, starts, axis=1)[:, cell]
    return -(told * np.log((elsewhere + UNSEEN) / (of_cell + UNSEEN * classes))).sum(axis=1)


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
