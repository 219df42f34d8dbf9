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
from typing import NamedTuple

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
"""How often forms are sought by what was counted of those found before."""


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


class Form(NamedTuple):
    """One form that a labelling of all items can take.

    Attributes
    ----------
    labelling : an array (*spatial) of class numbers per item
    labels : an array (raters, *spatial) per item, to be told once it is known; those that are missing need not be told
    cost : (items,) nats that it takes to tell the form itself; inf where an item has no such form
    """

    labelling: Sequence[np.ndarray]
    labels: Sequence[np.ndarray]
    cost: np.ndarray


def message_lengths(
    labelling: Sequence[np.ndarray], labels: Sequence[np.ndarray], classes: int, missing: int = 255
) -> np.ndarray:
    """How many nats (items,) it takes to tell all raters' labels of each item, once a labelling of all items is known.

    Tables are counted on all other items, so that none is told by itself.

    Parameters
    ----------
    labelling : an array (*spatial) of class numbers per item
    labels : an array (raters, *spatial) per item; those that are ``missing`` need not be told

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
    return shortest_messages([Form(labelling, labels, np.zeros(len(labelling)))], classes, missing)[0]


def shortest_messages(forms: Sequence[Form], classes: int, missing: int = 255) -> tuple[np.ndarray, np.ndarray]:
    """How many nats (items,) it takes if each item has the form that is told most shortly, and which (items,) that is.

    Tables are those of the forms that items have, and which form an item has is told, too. So a slip of somebody who is
    right on most items does not count for more than one item. Every item has the last form.

    Examples
    --------
    >>> truth, blank = np.zeros((2, 6, 9), dtype=int)
    >>> truth[1:4, 2:7] = 1
    >>> labels, free = [np.stack([truth, ndimage.binary_dilation(truth)])] * 5, np.zeros(5)
    >>> drawn, foretold = Form([truth] * 4 + [blank], labels, free), Form([truth] * 5, labels, free + 1.0)
    >>> shortest_messages([drawn, foretold], classes=2)[1]
    array([0, 0, 0, 0, 1])
    """
    costs = np.stack([form.cost for form in forms])
    there, items = np.isfinite(costs), np.arange(costs.shape[1])
    tallies = [
        [
            _tally(labelling, drawn, classes, missing) if has else NOTHING
            for labelling, drawn, has in zip(form.labelling, form.labels, having)
        ]
        for form, having in zip(forms, there)
    ]
    entries = np.unique(np.concatenate([entry for form in tallies for entry, _ in form] or [NOTHING[0]]))
    if not len(entries):  # nobody's labels are to be told
        return costs.min(axis=0), costs.argmin(axis=0)
    _, cell = np.unique(entries // classes, return_inverse=True)
    counts = np.stack([_counts(form, entries) for form in tallies])
    last = len(forms) - 1
    starts = [there.argmax(axis=0), *(np.where(having, number, last) for number, having in enumerate(there))]
    found: tuple[np.ndarray, np.ndarray] | None = None
    for form_of in starts if last else starts[:1]:
        for _ in range(ROUNDS if last else 1):
            kept = counts[form_of, items]
            nats = costs + np.stack([_nats(each, kept, cell, classes) for each in counts])
            form_of = nats.argmin(axis=0)
        told = nats.min(axis=0) + _nats_of_choice(form_of, there)
        if found is None or told.sum() < found[0].sum():
            found = told, form_of
    assert found is not None
    return found


NOTHING = np.zeros(0, dtype=int), np.zeros(0, dtype=int)


def _nats_of_choice(form_of: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Nats (items,) that it takes to tell which form an item has, of those that are there (forms, items)."""
    nats = np.zeros(len(form_of))
    for kind in np.unique(there, axis=1).T:
        alike = (there == kind[:, None]).all(axis=0)
        often = np.bincount(form_of[alike], minlength=len(kind)) + UNSEEN
        nats[alike] = -np.log(often / often[kind].sum())[form_of[alike]]
    return nats


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
