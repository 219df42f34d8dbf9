"""How good predictions of held-out items are: by everybody's labels, by each other, by the truth where it is known."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import overload

import numpy as np
from scipy.optimize import linear_sum_assignment

from annotruth.data.annotations import Annotations
from annotruth.data.answers import Answers
from annotruth.data.confusion import confusion_counts, normalise_rows
from annotruth.errors import InputError
from annotruth.fusion.gold import Gold, GoldMasks, gold_answers
from annotruth.methods.anchor.foretelling import UNSEEN, message_lengths
from annotruth.metrics import dice_per_item
from annotruth.validation import MISSING_LABEL, MISSING_PIXEL

Predictions = Sequence[np.ndarray]
"""A prediction per item: (*spatial) class numbers, or one class number, ()."""


SWAPPED = 0.05
"""By how much, summed over classes, other names must fit the raters' labels better for classes to count as swapped."""


class _ItemMasks(Sequence[np.ndarray]):
    """The masks of all items, read one after the other."""

    def __init__(self, annotations: Annotations) -> None:
        self._annotations = annotations

    def __len__(self) -> int:
        return len(self._annotations)

    @overload
    def __getitem__(self, index: int) -> np.ndarray: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[np.ndarray]: ...
    def __getitem__(self, index: int | slice) -> np.ndarray | Sequence[np.ndarray]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self._annotations.item_masks(index)


def told_lengths(annotations: Annotations, predictions: Predictions) -> np.ndarray:
    """How many nats it takes to tell all raters' labels of each item, once the predictions are known: (items,).

    Tables that tell labels by the prediction are counted on all other items: see
    :func:`annotruth.methods.anchor.foretelling.message_lengths` for masks, :func:`answer_lengths` for label tables.

    Examples
    --------
    Three raters draw the same square; a prediction that shows it leaves less to tell than one that shows nothing.

    >>> masks = np.zeros((4, 3, 8, 8), dtype=np.uint8)
    >>> masks[:, :, 2:6, 2:6] = 1
    >>> annotations = Annotations.from_masks(masks)
    >>> right, nothing = (told_lengths(annotations, list(one)).sum() for one in (masks[:, 0], 0 * masks[:, 0]))
    >>> bool(right < nothing)
    True
    """
    classes = len(annotations.classes)
    if annotations.kind == "labels":
        return answer_lengths(np.asarray(predictions, dtype=np.int64), annotations.answers, classes)
    return message_lengths(predictions, _ItemMasks(annotations), classes, MISSING_PIXEL)


def answer_lengths(predicted: np.ndarray, answers: Answers, classes: int) -> np.ndarray:
    """How many nats it takes to tell all answers on each item, once a class of every item is predicted.

    An answer is told by how often its rater gave it on the *other* items of the predicted class. What a rater has not
    yet shown is taken from what all raters together answer on these items, and what nobody has from all classes alike;
    each of the two counts as much as half an answer of every class does.

    Parameters
    ----------
    predicted : (items,) class numbers
    answers : of all raters

    Returns
    -------
    (items,), 0 where nobody answered

    Examples
    --------
    >>> truth = np.array([0, 1] * 10)
    >>> answers = Annotations.from_answers(np.stack([truth, truth, 1 - truth], axis=1)).answers  # the third swaps both
    >>> right, constant = (answer_lengths(guess, answers, classes=2).sum() for guess in (truth, 0 * truth))
    >>> bool(right < constant / 4)
    True
    """
    told_by = predicted[answers.item].astype(np.int64)
    label = answers.label.astype(np.int64)
    rater = answers.rater.astype(np.int64)
    # A rater answers an item once at most, so that without the item there is one answer less.
    of_rater = _counts(rater * classes + told_by) - 1
    the_same = _counts((rater * classes + told_by) * classes + label) - 1
    # Of all raters' answers, those on the same item are left out: all of them are told by the same prediction.
    item = answers.item.astype(np.int64)
    everybody = _counts(told_by) - _counts(item)
    everybody_same = _counts(told_by * classes + label) - _counts(item * classes + label)
    prior = (everybody_same + UNSEEN) / (everybody + UNSEEN * classes)
    chances = (the_same + UNSEEN * classes * prior) / (of_rater + UNSEEN * classes)
    return np.bincount(answers.item, weights=-np.log(chances), minlength=len(predicted))


def _counts(keys: np.ndarray) -> np.ndarray:
    """How often each entry's key occurs."""
    _, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return counts[place.ravel()]


def swaps_classes(annotations: Annotations, predictions: Predictions) -> bool:
    """Whether raters mostly call the predicted classes by each other's names.

    The length of a message does not depend on what classes are called: labels can be told as well by a prediction that
    takes every class for another. So the names are held against those that raters give to the same items.

    Examples
    --------
    >>> annotations = Annotations.from_answers(np.array([[0, 0], [1, 1], [0, 1], [1, 1]]))
    >>> swaps_classes(annotations, [0, 1, 0, 1]), swaps_classes(annotations, [1, 0, 1, 0])
    (False, True)
    """
    classes = len(annotations.classes)
    if annotations.kind == "labels":
        answers, predicted = annotations.answers, np.asarray(predictions, dtype=np.int64)
        met, numbers = np.unique(np.concatenate([predicted[answers.item], answers.label]), return_inverse=True)
        told_by, label = np.split(numbers.ravel(), 2)
        counts = confusion_counts(told_by, label, len(met))
    else:
        masks = _ItemMasks(annotations)
        counts = sum(
            (confusion_counts(one[None], masks[index], classes) for index, one in enumerate(predictions)),
            start=np.zeros((classes, classes), dtype=np.int64),
        )
    predicted_at_all = counts.any(axis=1)
    shares = normalise_rows(counts)[predicted_at_all]
    rows, names = linear_sum_assignment(shares, maximize=True)
    own = shares[rows, np.flatnonzero(predicted_at_all)]
    return bool(shares[rows, names].sum() > own.sum() + SWAPPED)


def agreement(annotations: Annotations, by_seed: Sequence[Predictions]) -> np.ndarray | None:
    """How far predictions of different seeds agree on each item, over all pairs of seeds: (items,); None of one seed.

    Foreground Dice for masks, 1 or 0 for label tables.

    Examples
    --------
    >>> annotations = Annotations.from_answers(np.array([[0, 1], [1, 1]]))
    >>> agreement(annotations, [[0, 1], [0, 0], [0, 1]]).round(3)
    array([1.   , 0.333])
    """
    if len(by_seed) < 2:
        return None
    pairs = [
        [_alike(one, other, annotations) for one, other in zip(first, second)]
        for first, second in combinations(by_seed, 2)
    ]
    return np.mean(pairs, axis=0)


class KnownTruth:
    """The truth of items where it is known, to score predictions by.

    Parameters
    ----------
    gold : as estimators of ``annotruth.fusion`` take it; None = the truth that the annotations carry, if any
    """

    def __init__(self, annotations: Annotations, gold: Gold) -> None:
        self._annotations = annotations
        own = gold is None and annotations.has_truth
        self._masks = GoldMasks(annotations, "truth" if own else gold) if annotations.kind == "masks" else None
        self._classes = gold_answers(annotations, "truth" if own else gold) if annotations.kind == "labels" else None
        known = [self._class_or_mask(index) is not None for index in range(len(annotations))]  # a bad one is named now
        if gold is not None and not any(known):
            raise InputError("gold= tells the truth of no item; leave it out, or give that of some items.")

    def scores(self, predictions: Predictions) -> np.ndarray:
        """Foreground Dice of each item, or 1 and 0 where its class is right and wrong: (items,), nan = not known."""
        return np.array([self._score(index, one) for index, one in enumerate(predictions)])

    def _score(self, index: int, prediction: np.ndarray) -> float:
        truth = self._class_or_mask(index)
        return np.nan if truth is None else _alike(prediction, truth, self._annotations)

    def _class_or_mask(self, index: int) -> np.ndarray | None:
        """The truth of an item, None where it is not known."""
        if self._classes is not None:
            return self._classes[index] if self._classes[index] != MISSING_LABEL else None
        truth = self._masks.read(index) if self._masks else None
        return None if truth is None or (truth == MISSING_PIXEL).all() else truth


def _alike(one: np.ndarray, other: np.ndarray, annotations: Annotations) -> float:
    if annotations.kind == "labels":
        return float(one == other)
    dice = dice_per_item(np.asarray(one)[None], np.asarray(other)[None], len(annotations.classes))
    return float(dice[0, 1:].mean())
