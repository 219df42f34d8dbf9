"""Labels in the forms in which people have them, brought to the one that a score needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.data.answers import answers_from_matrix
from annotruth.errors import InputError
from annotruth.validation import MISSING_PIXEL

Masks = Annotations | np.ndarray | Sequence[np.ndarray]
"""Masks as annotations, as an array (items, raters, *spatial), or as one (raters, *spatial) array per item."""


def vote_counts(answers: Annotations | np.ndarray, n_classes: int | None = None) -> np.ndarray:
    """Count the votes for each class: (items, classes).

    Parameters
    ----------
    answers : a label table as annotations (any size: it is not made dense), or as an array (items, raters) of class
        numbers, -1 = missing
    n_classes : by default as many as the annotations name, or as the answers show

    Examples
    --------
    >>> vote_counts(np.array([[0, 1, 1], [2, -1, 2]]))
    array([[1, 2, 0],
           [0, 0, 2]])
    """
    if isinstance(answers, Annotations):
        given, n_items, n_classes = answers.answers, len(answers), len(answers.classes)
    else:
        given, n_classes = answers_from_matrix(answers, n_classes)
        n_items = len(answers)
    cell = given.item.astype(np.intp) * n_classes + given.label
    return np.bincount(cell, minlength=n_items * n_classes).reshape(n_items, n_classes)


def each_item(masks: Masks) -> Iterator[np.ndarray]:
    """Give one item's masks (raters, *spatial) after the other, without holding all of them."""
    if len(masks) == 0:
        raise InputError("There is no item: the masks are empty.")
    if isinstance(masks, Annotations):
        items: Iterable[np.ndarray] = map(masks.item_masks, range(len(masks)))
    else:
        items = map(np.asarray, masks)
    for index, item in enumerate(items):
        if item.ndim < 3:
            raise InputError(f"Item {index}: give masks as (items, raters, *spatial), found {item.shape} for one item.")
        yield item


def count_classes(masks: Masks, n_classes: int | None) -> int:
    """Give the number of classes: as stated, as the annotations name them, or as the labels show (at least 2)."""
    if n_classes is not None:
        return n_classes
    if isinstance(masks, Annotations):
        return len(masks.classes)
    return max([2, *(1 + int(item[item != MISSING_PIXEL].max(initial=0)) for item in each_item(masks))])
