"""Annotations: who said what about which item. The one type that flows through everything.

The file is long because it is one class: what it holds, how it is made, and parts of it. Rules for labels are in
``validation``, label tables in ``answers``, coarse drawings in ``drawings``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from annotruth.data.answers import Answers, answers_from_frame, answers_from_matrix, truth_numbers
from annotruth.data.drawings import settle_drawings
from annotruth.errors import InputError
from annotruth.validation import (
    MAX_MASK_CLASSES,
    MISSING_PIXEL,
    finite_image,
    highest_label,
    mask_labels,
    one_of,
    same_grid,
    strange_labels,
    unique_names,
    voxel_spacing,
)

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Lazy:
    """An array that is read when it is needed.

    ``read`` must be picklable (a module-level function in a ``functools.partial``): other processes read too.
    """

    read: Callable[[], np.ndarray]
    shape: tuple[int, ...]


ArrayLike = np.ndarray | Sequence[Any]
Spacing = tuple[float, ...]
"""Millimetres from one pixel to the next, along each spatial axis."""


class Annotations:
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

    def __init__(
        self,
        *,
        kind: Literal["masks", "labels"],
        items: Sequence[str],
        raters: Sequence[str],
        classes: Sequence[str],
        masks: ArrayLike | None = None,
        negatives: ArrayLike | None = None,
        answers: Answers | None = None,
        images: ArrayLike | None = None,
        truth: ArrayLike | None = None,
        groups: Sequence[str] | None = None,
        rater_info: Mapping[str, Mapping[str, Any]] | None = None,
        sources: Sequence[Path | None] | None = None,
        pixel_values: Mapping[int, int] | None = None,
        spacing: Sequence[Spacing | None] | None = None,
    ) -> None:
        self.kind = kind
        self.items = unique_names(items, "item")
        self.raters = unique_names(raters, "rater")
        self.classes = unique_names(classes, "class")
        self.groups = None if groups is None else tuple(map(str, groups))
        self.rater_info = {name: dict(info) for name, info in (rater_info or {}).items()}
        self.sources = None if sources is None else tuple(sources)
        self.pixel_values = None if pixel_values is None else dict(pixel_values)
        self._masks, self._answers, self._images, self._truth = masks, answers, images, truth
        self._negatives = negatives
        if kind == "masks" and len(self.classes) > MAX_MASK_CLASSES:
            raise InputError(f"Masks hold at most {MAX_MASK_CLASSES} classes, {len(self.classes)} were given.")
        lists: dict[str, ArrayLike | None] = {
            "masks": masks, "negatives": negatives, "images": images, "truth": truth, "groups": groups,
            "spacing": spacing,
        }  # fmt: skip
        for what, values in lists.items():
            if values is not None and len(values) != len(self.items):
                raise InputError(f"{len(self.items)} items but {len(values)} {what}: there must be one each.")
        strangers = sorted(set(self.rater_info) - set(self.raters))
        if strangers:
            raise InputError(f"rater_info names raters without labels: {', '.join(strangers)}.")
        self._spacing = None if spacing is None else tuple(map(self._checked_spacing, range(len(self)), spacing))

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
        spacing: Spacing | Sequence[Spacing | None] | None = None,
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
        spacing : millimetres from pixel to pixel along each spatial axis: one tuple for all items, or one (or None)
            per item

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
        n_raters = int(_shape_of(masks[0])[0]) if not isinstance(masks, np.ndarray) else masks.shape[1]
        items = items if items is not None else _numbered("item", len(masks))
        raters = raters if raters is not None else _numbered("rater", n_raters, first=1)
        if len(raters) != n_raters:
            raise InputError(f"The masks hold {n_raters} raters but {len(raters)} names were given.")
        if negatives is not None:
            masks, negatives = settle_drawings(masks, negatives, items, raters)
        unknown = classes is None
        if classes is None:
            drawn = [*masks, *(negatives if negatives is not None else [])]
            classes = max(2, 1 + max(_highest(each, items[i % len(masks)], raters) for i, each in enumerate(drawn)))
        if isinstance(classes, int):
            classes = [str(number) for number in range(classes)]
        made = cls(
            kind="masks", items=items, raters=raters, classes=classes, masks=masks, images=images, truth=truth,
            groups=groups, rater_info=rater_info, negatives=negatives, spacing=spacing_per_item(spacing, len(masks)),
        )  # fmt: skip
        for index in range(len(made.items)):
            if not isinstance(masks[index], Lazy):
                made.check_item(index, checked=not unknown)  # the classes are those that the labels show
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
        n_named = classes if isinstance(classes, int) or classes is None else len(classes)
        answers, n_classes = answers_from_matrix(matrix, n_named)
        return cls(
            kind="labels",
            items=items if items is not None else _numbered("item", len(matrix)),
            raters=raters if raters is not None else _numbered("rater", np.shape(matrix)[1], first=1),
            classes=[str(c) for c in range(n_classes)] if classes is None or isinstance(classes, int) else classes,
            answers=answers, images=images, truth=None if truth is None else np.asarray(truth), groups=groups,
            rater_info=rater_info,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        size = f"{len(self.items)} items, {len(self.raters)} raters, {len(self.classes)} classes"
        return f"Annotations({self.kind}: {size}{f', {len(self.answers)} answers' if self.kind == 'labels' else ''})"

    @property
    def has_images(self) -> bool:
        return self._images is not None

    @property
    def has_truth(self) -> bool:
        return self._truth is not None

    @property
    def has_negatives(self) -> bool:
        """Whether anybody drew what is not there."""
        return self._negatives is not None

    @property
    def answers(self) -> Answers:
        """The answers of a label table."""
        if self._answers is None:
            raise InputError("These annotations are masks; only a label table has answers.")
        return self._answers

    def answer_matrix(self) -> np.ndarray:
        """Dense answers (items, raters), -1 = missing."""
        return self.answers.matrix(len(self.items), len(self.raters))

    def item_masks(self, index: int, *, checked: bool = True) -> np.ndarray:
        """One item's masks (raters, *spatial) as uint8, 255 = not labelled; read from disk where they lie there.

        ``checked=False`` spares the look for labels outside the classes: for callers that find them on the way.
        """
        if self._masks is None:
            raise InputError("These annotations are a label table; only masks have item_masks.")
        array = np.asarray(_read(self._masks[index]))
        if array.dtype == np.uint8 and array.ndim > 1 and not (checked and strange_labels(array, len(self.classes))):
            return array
        return np.stack(
            [mask_labels(array[r], len(self.classes), self._where(index, r)) for r in range(len(self.raters))]
        )

    def item_negatives(self, index: int) -> np.ndarray:
        """One item's negative drawings (raters, *spatial) as uint8: a class that is not there, 255 = nothing said."""
        if self._negatives is None:
            return np.full((len(self.raters), *self.shape(index)), MISSING_PIXEL, dtype=np.uint8)
        drawn = _read(self._negatives[index])
        where = [f"{self._where(index, r)}, negative drawing" for r in range(len(self.raters))]
        return np.stack([mask_labels(one, len(self.classes), here) for one, here in zip(drawn, where)])

    def item_image(self, index: int) -> np.ndarray:
        """One item's image (channels, *spatial), or feature vector, as finite float32."""
        if self._images is None:
            raise InputError("These annotations carry no images; give them with images=, or put them into images/.")
        return finite_image(_read(self._images[index]), f"Item {self.items[index]}")

    def item_truth(self, index: int) -> np.ndarray:
        """One item's true labels (*spatial) as uint8, 255 = unknown."""
        if self._truth is None or self.kind != "masks":
            raise InputError("These annotations carry no true masks.")
        return mask_labels(_read(self._truth[index]), len(self.classes), f"Item {self.items[index]}, truth")

    def shape(self, index: int) -> tuple[int, ...]:
        """One item's spatial size, without reading it."""
        if self._masks is not None:
            return tuple(_shape_of(self._masks[index]))[1:]
        return tuple(_shape_of(self._images[index]))[1:] if self._images is not None else ()

    def spacing(self, index: int) -> Spacing | None:
        """Millimetres from pixel to pixel along each of one item's spatial axes; None where nobody told.

        Examples
        --------
        >>> masks = np.zeros((2, 3, 8, 8, 4), dtype=np.uint8)
        >>> Annotations.from_masks(masks, spacing=(0.5, 0.5, 3)).spacing(1)
        (0.5, 0.5, 3.0)
        """
        return None if self._spacing is None else self._spacing[index]

    @property
    def same_shape(self) -> bool:
        """Whether every item has the same spatial size."""
        return isinstance(self._masks, np.ndarray) or len({self.shape(i) for i in range(len(self))}) == 1

    @property
    def masks(self) -> np.ndarray:
        """All masks (items, raters, *spatial), where sizes are equal."""
        return self._masks if _is_final(self._masks) else self._stack(self.item_masks)  # type: ignore[return-value]

    @property
    def images(self) -> np.ndarray:
        """All images (items, channels, *spatial), or feature vectors (items, features), where sizes are equal."""
        return self._stack(self.item_image)

    @property
    def truth(self) -> np.ndarray:
        """True labels where known: (items, *spatial), 255 = unknown; or (items,), -1 = unknown."""
        if self._truth is None:
            raise InputError("These annotations carry no truth; give it with truth=, or put it into truth/.")
        return np.asarray(self._truth) if self.kind == "labels" else self._stack(self.item_truth)

    def labelled(self) -> np.ndarray:
        """Who labelled what: bool (items, raters). Reads every mask once."""
        if self.kind == "labels":
            labelled = np.zeros((len(self.items), len(self.raters)), dtype=bool)
            labelled[self.answers.item, self.answers.rater] = True
            return labelled
        flat = (self.item_masks(i).reshape(len(self.raters), -1) for i in range(len(self)))
        return np.stack([(masks != MISSING_PIXEL).any(axis=1) for masks in flat])

    def __iter__(self) -> Iterator[str]:
        return iter(self.items)

    def _where(self, index: int, rater: int) -> str:
        return f"Item {self.items[index]}, rater {self.raters[rater]}"

    def check_item(self, index: int, *, checked: bool = True) -> None:
        """Refuse an item whose masks, image or truth do not fit together; ``checked`` as in :meth:`item_masks`."""
        masks = self.item_masks(index, checked=checked)
        if self._negatives is not None:
            self.item_negatives(index)
        if len(masks) != len(self.raters):
            raise InputError(f"Item {self.items[index]}: {len(masks)} masks for {len(self.raters)} raters.")
        if self._images is not None:
            same_grid(masks.shape[1:], tuple(_shape_of(self._images[index]))[1:], f"Item {self.items[index]}")
        if self._truth is not None:
            same_grid(tuple(_shape_of(self._truth[index])), masks.shape[1:], f"Item {self.items[index]}, truth")

    def _checked_spacing(self, index: int, spacing: Sequence[float] | None) -> Spacing | None:
        where = f"Item {self.items[index]}"
        return None if spacing is None else voxel_spacing(spacing, len(self.shape(index)), where)

    def _stack(self, one: Callable[[int], np.ndarray]) -> np.ndarray:
        arrays = [one(index) for index in range(len(self))]
        if len({array.shape for array in arrays}) > 1:
            raise InputError("The items differ in size, so there is no single array of them; go item by item.")
        return np.stack(arrays)

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
            spacing=part(self._spacing),
        )  # fmt: skip

    def take_raters(self, raters: Sequence[str]) -> Annotations:
        """The annotations of some raters, by name, in the order given; items and classes stay as they are.

        Examples
        --------
        >>> two = Annotations.from_answers(np.array([[0, 1, 1], [1, 1, 0]])).take_raters(["rater_3", "rater_1"])
        >>> two.answer_matrix()
        array([[1, 0],
               [0, 1]], dtype=int16)
        """
        places = np.array([self.raters.index(one_of(name, self.raters, "rater")) for name in raters], dtype=np.int64)

        def part(values: ArrayLike | None) -> Any:
            if values is None or isinstance(values, np.ndarray):
                return None if values is None else values[:, places]
            return [Lazy(partial(_some, one, places), (len(places), *_shape_of(one)[1:])) for one in values]

        return self._with(
            raters=raters, masks=part(self._masks), negatives=part(self._negatives),
            answers=None if self._answers is None else self._answers.take_raters(places, len(self.raters)),
            rater_info={name: info for name, info in self.rater_info.items() if name in raters},
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
            "pixel_values": self.pixel_values, "spacing": self._spacing,
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
    array = _read(masks)
    if array.dtype == np.uint8 and array.ndim > 1 and (highest := highest_label(array)) < MAX_MASK_CLASSES:
        return max(highest, 0)
    checked = [mask_labels(array[r], None, f"Item {item}, rater {raters[r]}") for r in range(len(raters))]
    return max((int(m[m != MISSING_PIXEL].max(initial=0)) for m in checked), default=0)


def spacing_per_item(spacing: Any, n_items: int) -> Sequence[Spacing | None] | None:
    """One spacing per item, where one was given for all."""
    if spacing is None:
        return None
    for_all = np.isscalar(spacing) or all(each is not None and np.ndim(each) == 0 for each in spacing)
    return [spacing] * n_items if for_all else spacing


def _numbered(what: str, count: int, first: int = 0) -> list[str]:
    return [f"{what}_{number}" for number in range(first, first + count)]


def _read(value: Any) -> np.ndarray:
    """Give an array, whether it is there or must be read."""
    return value.read() if isinstance(value, Lazy) else np.asarray(value)


def _some(value: Any, places: np.ndarray) -> np.ndarray:
    """Some of the raters' masks of an item."""
    return _read(value)[places]


def _shape_of(value: Any) -> tuple[int, ...]:
    """Give an array's shape without reading it."""
    return value.shape if isinstance(value, (Lazy, np.ndarray)) else np.shape(value)


def _is_final(values: Any) -> bool:
    """Whether masks are given as they are given out."""
    return isinstance(values, np.ndarray) and values.dtype == np.uint8
