"""What annotations hold: names, labels, images and truth, read item by item where they lie on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from annotruth.data.answers import Answers
from annotruth.data.lazy import ArrayLike, read, shape_of
from annotruth.errors import InputError
from annotruth.validation import (
    MAX_MASK_CLASSES,
    MISSING_PIXEL,
    finite_image,
    mask_labels,
    same_grid,
    strange_labels,
    unique_names,
)


class Contents:
    """Base of ``Annotations``, which says what the attributes are."""

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
        lists = {"masks": masks, "negatives": negatives, "images": images, "truth": truth, "groups": groups}
        for what, values in lists.items():
            if values is not None and len(values) != len(self.items):
                raise InputError(f"{len(self.items)} items but {len(values)} {what}: there must be one each.")
        strangers = sorted(set(self.rater_info) - set(self.raters))
        if strangers:
            raise InputError(f"rater_info names raters without labels: {', '.join(strangers)}.")

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
        array = np.asarray(read(self._masks[index]))
        if array.dtype == np.uint8 and array.ndim > 1 and not (checked and strange_labels(array, len(self.classes))):
            return array
        return np.stack(
            [mask_labels(array[r], len(self.classes), self._where(index, r)) for r in range(len(self.raters))]
        )

    def item_negatives(self, index: int) -> np.ndarray:
        """One item's negative drawings (raters, *spatial) as uint8: a class that is not there, 255 = nothing said."""
        if self._negatives is None:
            return np.full((len(self.raters), *self.shape(index)), MISSING_PIXEL, dtype=np.uint8)
        drawn = read(self._negatives[index])
        where = [f"{self._where(index, r)}, negative drawing" for r in range(len(self.raters))]
        return np.stack([mask_labels(one, len(self.classes), here) for one, here in zip(drawn, where)])

    def item_image(self, index: int) -> np.ndarray:
        """One item's image (channels, *spatial), or feature vector, as finite float32."""
        if self._images is None:
            raise InputError("These annotations carry no images; give them with images=, or put them into images/.")
        return finite_image(read(self._images[index]), f"Item {self.items[index]}")

    def item_truth(self, index: int) -> np.ndarray:
        """One item's true labels (*spatial) as uint8, 255 = unknown."""
        if self._truth is None or self.kind != "masks":
            raise InputError("These annotations carry no true masks.")
        return mask_labels(read(self._truth[index]), len(self.classes), f"Item {self.items[index]}, truth")

    def shape(self, index: int) -> tuple[int, ...]:
        """One item's spatial size, without reading it."""
        if self._masks is not None:
            return tuple(shape_of(self._masks[index]))[1:]
        return tuple(shape_of(self._images[index]))[1:] if self._images is not None else ()

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
            given = np.zeros((len(self.items), len(self.raters)), dtype=bool)
            given[self.answers.item, self.answers.rater] = True
            return given
        flat = (self.item_masks(i).reshape(len(self.raters), -1) for i in range(len(self)))
        return np.stack([(masks != MISSING_PIXEL).any(axis=1) for masks in flat])

    def __iter__(self) -> Iterator[str]:
        return iter(self.items)

    def _where(self, index: int, rater: int) -> str:
        return f"Item {self.items[index]}, rater {self.raters[rater]}"

    def check_item(self, index: int) -> None:
        """Refuse an item whose masks, image or truth do not fit together."""
        masks = self.item_masks(index)
        if self._negatives is not None:
            self.item_negatives(index)
        if len(masks) != len(self.raters):
            raise InputError(f"Item {self.items[index]}: {len(masks)} masks for {len(self.raters)} raters.")
        if self._images is not None:
            same_grid(masks.shape[1:], tuple(shape_of(self._images[index]))[1:], f"Item {self.items[index]}")
        if self._truth is not None:
            same_grid(tuple(shape_of(self._truth[index])), masks.shape[1:], f"Item {self.items[index]}, truth")

    def _stack(self, one: Callable[[int], np.ndarray]) -> np.ndarray:
        arrays = [one(index) for index in range(len(self))]
        if len({array.shape for array in arrays}) > 1:
            raise InputError("The items differ in size, so there is no single array of them; go item by item.")
        return np.stack(arrays)


def _is_final(values: Any) -> bool:
    """Whether masks are given as they are given out."""
    return isinstance(values, np.ndarray) and values.dtype == np.uint8
