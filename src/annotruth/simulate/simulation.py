"""What a simulation gives: the labels, and how each rater really erred."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.data.confusion import confusion_counts, normalise_rows
from annotruth.errors import InputError
from annotruth.validation import MISSING_PIXEL, mask_labels, unique_names


@dataclass(frozen=True)
class Simulation:
    """Simulated labels with the truth behind them.

    Attributes
    ----------
    raters : names
    truth : (items, *spatial) true masks, 255 = unknown (one array per item where sizes differ); or (items,) true
        labels, -1 = unknown
    masks : (items, raters, *spatial) uint8, 255 = not labelled (one array per item where sizes differ); or None
    negatives : (items, raters, *spatial) uint8, the class that a pixel is drawn not to be, 255 = nothing said; or None
    answers : (items, raters) int16, -1 = not labelled; or None
    confusion : (raters, classes, classes), [true, observed], rows sum to 1. Mask raters: counted over all pixels of
        all items, also of labels that were not kept; the row of a class that never occurs is nan. Label raters: the
        matrix that drew the labels
    confusion_per_item : (items, raters, classes, classes), the same for each item's mask; None for label raters
    """

    raters: tuple[str, ...]
    truth: np.ndarray | list[np.ndarray]
    confusion: np.ndarray
    masks: np.ndarray | list[np.ndarray] | None = None
    answers: np.ndarray | None = None
    confusion_per_item: np.ndarray | None = None
    negatives: np.ndarray | list[np.ndarray] | None = None

    def annotations(
        self,
        images: np.ndarray | Sequence[Any] | None = None,
        *,
        items: Sequence[str] | None = None,
        classes: Sequence[str] | None = None,
        groups: Sequence[str] | None = None,
    ) -> Annotations:
        """Give the labels as annotations with the truth attached.

        Parameters
        ----------
        images : (items, channels, *spatial), or (items, features)
        items, classes, groups : names, as in ``Annotations``

        Examples
        --------
        >>> from annotruth.simulate import simulate_masks
        >>> truth = np.zeros((4, 16, 16), dtype=np.uint8)
        >>> truth[:, 4:12, 4:12] = 1
        >>> simulate_masks(truth).annotations()
        Annotations(masks: 4 items, 5 raters, 2 classes)
        """
        named = classes if classes is not None else [str(number) for number in range(self.confusion.shape[-1])]
        common: dict[str, Any] = {"images": images, "raters": self.raters, "items": items, "groups": groups}
        if self.masks is not None:
            return Annotations.from_masks(
                self.masks, classes=named, truth=self.truth, negatives=self.negatives, **common
            )
        if self.answers is None:
            raise InputError("This simulation holds neither masks nor answers.")
        return Annotations.from_answers(self.answers, classes=named, truth=np.asarray(self.truth), **common)


def choose_raters(n_items: int, n_raters: int, keep: int | Literal["all"], seed: int) -> np.ndarray:
    """Choose who labels what: bool (items, raters), all or exactly ``keep`` random raters per item.

    Examples
    --------
    >>> choose_raters(4, 3, keep=2, seed=0).sum(axis=1)
    array([2, 2, 2, 2])
    """
    if keep == "all":
        return np.ones((n_items, n_raters), dtype=bool)
    if not isinstance(keep, (int, np.integer)) or not 1 <= keep <= n_raters:
        raise InputError(f"keep must be 'all' or how many of the {n_raters} raters label an item, found {keep!r}.")
    # One row of numbers per item, drawn in order: an item's draw does not change when items are added behind it.
    rank = np.random.default_rng(seed).random((n_items, n_raters)).argsort(axis=1).argsort(axis=1)
    return rank < keep


def check_true_masks(truth: np.ndarray | Sequence[np.ndarray], n_classes: int | None) -> tuple[list[np.ndarray], int]:
    """Check true masks (items, *spatial); give them item by item as uint8, and how many classes there are.

    Examples
    --------
    >>> items, n_classes = check_true_masks(np.array([[0, 2], [255, 1]]), n_classes=None)
    >>> items[1], n_classes
    (array([255,   1], dtype=uint8), 3)
    """
    if len(truth) == 0:
        raise InputError("There is no item: the truth is empty.")
    items = [mask_labels(item, n_classes, f"Item {index}, truth") for index, item in enumerate(truth)]
    highest = max(int(item[item != MISSING_PIXEL].max(initial=0)) for item in items)
    return items, n_classes if n_classes is not None else max(2, 1 + highest)


def simulation_of_masks(
    items: list[np.ndarray],
    raters: Sequence[str],
    masks: list[np.ndarray],
    n_classes: int,
    negatives: list[np.ndarray] | None = None,
    kept: np.ndarray | None = None,
) -> Simulation:
    """Count the raters' errors, and put a simulation together.

    Parameters
    ----------
    items : true masks (*spatial)
    masks, negatives : what was drawn of each item, (raters, *spatial)
    kept : (items, raters) whose masks stay; errors are counted over all
    """
    counts = np.stack(
        [confusion_counts(item[None], drawn, n_classes, batch_axes=1) for item, drawn in zip(items, masks)]
    )
    for drawn, stay in zip(masks, kept if kept is not None else ()):
        drawn[~stay] = MISSING_PIXEL
    one_size = len({item.shape for item in items}) == 1
    return Simulation(
        raters=unique_names(raters, "rater"),
        truth=np.stack(items) if one_size else items,
        masks=np.stack(masks) if one_size else masks,
        negatives=np.stack(negatives) if one_size and negatives is not None else negatives,
        confusion=normalise_rows(counts.sum(axis=0)),
        confusion_per_item=normalise_rows(counts),
    )
