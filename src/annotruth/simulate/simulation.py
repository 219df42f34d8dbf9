"""What a simulation gives: the labels, and how each rater really erred."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError


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


def kept_labels(n_items: int, n_raters: int, keep: int | Literal["all"], seed: int) -> np.ndarray:
    """Choose who labels what: bool (items, raters), all or exactly ``keep`` random raters per item.

    Examples
    --------
    >>> kept_labels(4, 3, keep=2, seed=0).sum(axis=1)
    array([2, 2, 2, 2])
    """
    if keep == "all":
        return np.ones((n_items, n_raters), dtype=bool)
    if not isinstance(keep, (int, np.integer)) or not 1 <= keep <= n_raters:
        raise InputError(f"keep must be 'all' or how many of the {n_raters} raters label an item, found {keep!r}.")
    # One row of numbers per item, drawn in order: an item's draw does not change when items are added behind it.
    rank = np.random.default_rng(seed).random((n_items, n_raters)).argsort(axis=1).argsort(axis=1)
    return rank < keep
