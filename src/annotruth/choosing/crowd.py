"""What must be known of annotations before methods are compared on them, and what makes that impossible."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError, shorten
from annotruth.validation import MISSING_PIXEL

NEED_OVERLAP = ("dawid-skene", "staple", "spatial-staple")
"""Methods that weigh raters by the items that several of them labelled."""


@dataclass(frozen=True)
class Crowd:
    """What annotations hold, found in one look at every item.

    Attributes
    ----------
    labelled : who labelled what: bool (items, raters)
    classes_seen : how many classes anybody ever gave
    digest : changes when an item, a label or an image does
    """

    labelled: np.ndarray
    classes_seen: int
    digest: str

    @property
    def by_rater(self) -> list[bool]:
        """Which raters labelled anything."""
        return [bool(column.any()) for column in self.labelled.T]

    @property
    def overlaps(self) -> bool:
        """Whether any item was labelled by two raters."""
        return bool((self.labelled.sum(axis=1) > 1).any())


def look_at(annotations: Annotations, tell: Callable[[int, int], None] = lambda done, total: None) -> Crowd:
    """Read every item once.

    Examples
    --------
    >>> found = look_at(Annotations.from_answers(np.array([[0, -1], [-1, 2]]), images=np.zeros((2, 3))))
    >>> found.labelled.tolist(), found.classes_seen, found.overlaps
    ([[True, False], [False, True]], 2, False)
    """
    digest = hashlib.blake2b(digest_size=16)
    names = (annotations.kind, annotations.items, annotations.raters, annotations.classes, annotations.groups)
    digest.update(repr((names, annotations.rater_info)).encode())
    seen = np.zeros(256, dtype=bool)
    labelled = np.zeros((len(annotations), len(annotations.raters)), dtype=bool)

    def take(array: np.ndarray) -> None:
        digest.update(repr((array.shape, array.dtype.str)).encode())
        digest.update(np.ascontiguousarray(array).data)

    if annotations.kind == "labels":
        answers, labelled = annotations.answers, annotations.labelled()
        for column in (answers.item, answers.rater, answers.label):
            take(column)
    for index in range(len(annotations)):
        take(annotations.item_image(index))
        digest.update(repr(annotations.spacing(index)).encode())
        if annotations.kind == "masks":
            masks = annotations.item_masks(index)
            take(masks)
            seen[np.unique(masks)] = True
            labelled[index] = (masks != MISSING_PIXEL).reshape(len(masks), -1).any(axis=1)
            if annotations.has_negatives:
                take(annotations.item_negatives(index))
        tell(index + 1, len(annotations))
    n_seen = len(np.unique(annotations.answers.label)) if annotations.kind == "labels" else seen[:MISSING_PIXEL].sum()
    return Crowd(labelled, int(n_seen), digest.hexdigest())


def refuse_crowd(annotations: Annotations, crowd: Crowd) -> None:
    """Refuse annotations on which no method can be compared with another.

    Examples
    --------
    >>> alone = Annotations.from_answers(np.array([[0], [1]]), images=np.zeros((2, 3)))
    >>> refuse_crowd(alone, look_at(alone))
    Traceback (most recent call last):
    annotruth.errors.InputError: Only rater_1 labelled anything: with one rater there is nothing ...
    """
    busy = [rater for rater, any_label in zip(annotations.raters, crowd.by_rater) if any_label]
    if not busy:
        raise InputError("There is not a single label: nothing can be learnt from these annotations.")
    if len(busy) == 1:
        raise InputError(
            f"Only {busy[0]} labelled anything: with one rater there is nothing that methods could do differently. "
            "Train with the method majority, or add another rater's labels."
        )
    if crowd.classes_seen < 2:
        raise InputError(
            f"Of {len(annotations.classes)} classes ({shorten(annotations.classes)}) the raters gave only one: there "
            "is nothing to tell apart. Check the labels with `annotruth check`."
        )


def refuse_without_overlap(methods: Sequence[str], crowd: Crowd) -> None:
    """Refuse methods that learn from items with several labels where there is none.

    Examples
    --------
    >>> refuse_without_overlap(["mean", "staple"], Crowd(np.eye(2, dtype=bool), 2, ""))
    Traceback (most recent call last):
    annotruth.errors.InputError: No item was labelled by two raters, so that staple cannot weigh ...
    """
    lost = [] if crowd.overlaps else [method for method in methods if method in NEED_OVERLAP]
    if lost:
        raise InputError(
            f"No item was labelled by two raters, so that {shorten(lost)} cannot weigh raters against each other. "
            "Compare others, as mean and global-cm."
        )
