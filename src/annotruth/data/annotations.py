"""Annotations: who said what about which item. The one type that flows through everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from annotruth.data.answers import answers_from_frame, answers_from_matrix, truth_numbers
from annotruth.data.contents import Contents
from annotruth.data.drawings import settle_drawings
from annotruth.data.lazy import ArrayLike, Lazy, read, shape_of
from annotruth.errors import InputError
from annotruth.validation import MISSING_PIXEL, mask_labels


class Annotations(Contents):
    """Several raters' labels of the same items, with images, truth and groups where they are known.

    Make one with :meth:`from_masks`, :meth:`from_table`, :meth:`from_answers` or ``annotruth.load``.

    Attributes
    ----------
    kind : "masks" (a mask per item and rater) or "labels" (one class per item and rater)
    items, raters, classes : names, in order; arrays below follow these orders
    groups : one name per item (the patient, say) that a split must not tear apart, or None
    rater_info : what is known of a rater, by name (years of experience, site …)
    sources : the file each item came from, or None; outputs follow its format and geometry
    pixel_values : the pixel value in those files by class number (255: not labelled), or None where they are the same
    """

    @classmethod
    def from_masks(
        cls,
        masks: ArrayLike,
        images: ArrayLike | None = None,
        raters: Sequence[str] | None = None,
        classes: Sequence[str] | int | None = None,
        *,
        items: Sequence[str] | None = None,
        truth: ArrayLike | None = None,
        groups: Sequence[str] | None = None,
        rater_info: Mapping[str, Mapping[str, Any]] | None = None,
        negatives: ArrayLike | None = None,
    ) -> Annotations:
        """From masks (items, raters, *spatial), or one (raters, *spatial) array per item where sizes differ.

        Parameters
        ----------
        masks : class numbers; 255 = this rater did not label this item or pixel
        images : (items, channels, *spatial), or one (channels, *spatial) array per item
        classes : names, or how many; by default as many as the labels show
        truth : (items, *spatial) true labels where known, 255 = unknown
        negatives : coarse drawings of what is *not* there, of the same shape as ``masks``: a class that the pixel does
            not belong to, 255 = nothing said. Pixels that ``masks`` give the same class are ignored in both

        Examples
        --------
        >>> import numpy as np
        >>> masks = np.zeros((4, 3, 8, 8), dtype=np.uint8)
        >>> masks[:, :, 2:6, 2:6] = 1
        >>> Annotations.from_masks(masks, raters=["ann", "bob", "cy"], classes=["background", "lesion"])
        Annotations(masks: 4 items, 3 raters, 2 classes)
        """
        if len(masks) == 0:
            raise InputError("There is no item: masks are empty.")
        n_raters = int(shape_of(masks[0])[0]) if not isinstance(masks, np.ndarray) else masks.shape[1]
        items = items if items is not None else _numbered("item", len(masks))
        raters = raters if raters is not None else _numbered("rater", n_raters, first=1)
        if len(raters) != n_raters:
            raise InputError(f"The masks hold {n_raters} raters but {len(raters)} names were given.")
        if negatives is not None:
            masks, negatives = settle_drawings(masks, negatives, items, raters)
        if classes is None:
            drawn = [*masks, *(negatives if negatives is not None else [])]
            classes = max(2, 1 + max(_highest(each, items[i % len(masks)], raters) for i, each in enumerate(drawn)))
        if isinstance(classes, int):
            classes = [str(number) for number in range(classes)]
        made = cls(
            kind="masks", items=items, raters=raters, classes=classes, masks=masks, images=images, truth=truth,
            groups=groups, rater_info=rater_info, negatives=negatives,
        )  # fmt: skip
        for index in range(len(made.items)):
            if not isinstance(masks[index], Lazy):
                made.check_item(index)
        return made

    @classmethod
    def from_table(
        cls,
        frame: pd.DataFrame,
        *,
        classes: Sequence[str] | None = None,
        items: Sequence[str] | None = None,
        images: ArrayLike | None = None,
        truth: Mapping[str, Any] | pd.Series | None = None,
        groups: Sequence[str] | None = None,
        rater_info: Mapping[str, Mapping[str, Any]] | None = None,
        duplicates: Literal["error", "keep-last"] = "error",
    ) -> Annotations:
        """From a long table with the columns item, rater, label: one row per answer.

        Parameters
        ----------
        items : names in the order of ``images``; by default in order of first appearance
        images : (items, channels, *spatial) pictures or (items, features) numbers
        truth : true label by item name, for the items where it is known
        duplicates : what to do when a rater labelled an item twice and differently: "error" lists these answers,
            "keep-last" takes the one that stands last in the table

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"item": ["a", "a", "b"], "rater": ["ann", "bob", "ann"], "label": [1, 0, 1]})
        >>> Annotations.from_table(frame)
        Annotations(labels: 2 items, 2 raters, 2 classes, 3 answers)
        """
        answers, item_names, raters, class_names = answers_from_frame(frame, classes, duplicates, items)
        made = cls(
            kind="labels", items=item_names, raters=raters, classes=class_names, answers=answers, images=images,
            groups=groups, rater_info=rater_info,
        )  # fmt: skip
        if truth is not None:
            made._truth = truth_numbers(dict(truth), made.items, made.classes)
        return made

    @classmethod
    def from_answers(
        cls,
        matrix: np.ndarray,
        images: ArrayLike | None = None,
        raters: Sequence[str] | None = None,
        classes: Sequence[str] | int | None = None,
        *,
        items: Sequence[str] | None = None,
        truth: np.ndarray | None = None,
        groups: Sequence[str] | None = None,
        rater_info: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Annotations:
        """From a dense table (items, raters) of class numbers, -1 = missing.

        Examples
        --------
        >>> import numpy as np
        >>> Annotations.from_answers(np.array([[0, 1, -1], [1, 1, 1]]))
        Annotations(labels: 2 items, 3 raters, 2 classes, 5 answers)
        """
        known = classes if isinstance(classes, int) or classes is None else len(classes)
        answers, n_classes = answers_from_matrix(matrix, known)
        return cls(
            kind="labels",
            items=items if items is not None else _numbered("item", len(matrix)),
            raters=raters if raters is not None else _numbered("rater", np.shape(matrix)[1], first=1),
            classes=[str(c) for c in range(n_classes)] if classes is None or isinstance(classes, int) else classes,
            answers=answers, images=images, truth=None if truth is None else np.asarray(truth), groups=groups,
            rater_info=rater_info,
        )  # fmt: skip

    def take(self, indices: Sequence[int] | np.ndarray) -> Annotations:
        """The annotations of some items, in the order given; raters and classes stay as they are."""
        indices = np.asarray(indices, dtype=np.int64)

        def part(values: ArrayLike | None) -> Any:
            if values is None:
                return None
            return values[indices] if isinstance(values, np.ndarray) else [values[i] for i in indices]

        return self._with(
            items=part(self.items), masks=part(self._masks), negatives=part(self._negatives),
            answers=None if self._answers is None else self._answers.take(indices, len(self)),
            images=part(self._images), truth=part(self._truth), groups=part(self.groups), sources=part(self.sources),
        )  # fmt: skip

    def with_truth(self, truth: ArrayLike) -> Annotations:
        """The same annotations with other true masks (items, *spatial), 255 = unknown."""
        return self._with(truth=truth)

    def with_images(self, images: ArrayLike, sources: Sequence[Path | None] | None = None) -> Annotations:
        """The same annotations with other images or features, one per item, and the files these came from."""
        return self._with(images=images, sources=sources)

    def _with(self, **changed: Any) -> Annotations:
        """The same annotations but for some of the constructor's arguments."""
        same: dict[str, Any] = {
            "kind": self.kind, "items": self.items, "raters": self.raters, "classes": self.classes,
            "masks": self._masks, "negatives": self._negatives, "answers": self._answers, "images": self._images,
            "truth": self._truth, "groups": self.groups, "rater_info": self.rater_info, "sources": self.sources,
            "pixel_values": self.pixel_values,
        }  # fmt: skip
        return Annotations(**{**same, **changed})

    def split(self, fractions: Sequence[float], seed: int = 0) -> list[Annotations]:
        """Split at random into parts of the given fractions (summing to 1), never tearing a group apart.

        Each part keeps the items' order. With groups, whole groups are dealt out to the part that lacks most.
        """
        if abs(sum(fractions) - 1) > 1e-6 or min(fractions) < 0:
            raise InputError(f"The fractions of a split must be positive and sum to 1, found {list(fractions)}.")
        groups = np.asarray(self.groups if self.groups is not None else self.items)
        _, group_of = np.unique(groups, return_inverse=True)
        sizes = np.bincount(group_of)
        wanted = np.asarray(fractions) * len(self)
        part_of = np.empty(len(sizes), dtype=int)
        for group in np.random.default_rng(seed).permutation(len(sizes)):
            part_of[group] = int(np.argmax(wanted))
            wanted[part_of[group]] -= sizes[group]
        return [self.take(np.flatnonzero(part_of[group_of] == part)) for part in range(len(fractions))]


def _highest(masks: Any, item: str, raters: Sequence[str]) -> int:
    array = read(masks)
    checked = [mask_labels(array[r], None, f"Item {item}, rater {raters[r]}") for r in range(len(raters))]
    return max((int(m[m != MISSING_PIXEL].max(initial=0)) for m in checked), default=0)


def _numbered(what: str, count: int, first: int = 0) -> list[str]:
    return [f"{what}_{number}" for number in range(first, first + count)]
