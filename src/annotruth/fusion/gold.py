"""Gold labels: items or pixels whose truth is known, in any of the forms users hold them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.data.answers import class_name
from annotruth.errors import InputError, shorten
from annotruth.validation import MISSING_LABEL, mask_labels, same_grid

if TYPE_CHECKING:
    import pandas as pd

Gold: TypeAlias = "np.ndarray | Sequence[Any] | Mapping[str, Any] | pd.DataFrame | str | None"


class GoldMasks:
    """True labels of some pixels of some items, read item by item.

    Parameters
    ----------
    gold : (items, *spatial) labels, or one array (or None) per item, or arrays by item name; 255 = unknown.
        "truth" stands for the truth that the annotations carry.
    """

    def __init__(self, annotations: Annotations, gold: Gold) -> None:
        self._annotations = annotations
        self._own = isinstance(gold, str)
        self._by_item: dict[int, Any] = {}
        if isinstance(gold, str):
            _only_truth(gold)
            if not annotations.has_truth:
                raise InputError("gold='truth' asks for the annotations' truth, but they carry none.")
        elif isinstance(gold, Mapping):
            places = _places(annotations, list(gold))
            self._by_item = dict(zip(places, gold.values()))
        elif _is_frame(gold):
            raise InputError("Gold labels of masks are masks: give an array per item, not a table.")
        elif gold is not None:
            if len(gold) != len(annotations):
                raise InputError(f"{len(annotations)} items but {len(gold)} gold masks: there must be one each.")
            self._by_item = {index: mask for index, mask in enumerate(gold) if mask is not None}

    def __bool__(self) -> bool:
        return self._own or bool(self._by_item)

    def read(self, index: int) -> np.ndarray | None:
        """One item's true labels (*spatial) uint8, 255 = unknown; None if all are unknown."""
        annotations = self._annotations
        if self._own:
            return annotations.item_truth(index)
        if index not in self._by_item:
            return None
        where = f"Item {annotations.items[index]}, gold"
        mask = mask_labels(np.asarray(self._by_item[index]), len(annotations.classes), where)
        same_grid(mask.shape, annotations.shape(index), where)
        return mask


def gold_answers(annotations: Annotations, gold: Gold) -> np.ndarray:
    """Give the true class of each item, (items,) int16, -1 = unknown.

    Parameters
    ----------
    gold : (items,) class numbers, -1 = unknown; or class names by item name; or a table with the columns item and
        label (or truth). "truth" stands for the truth that the annotations carry.

    Examples
    --------
    >>> annotations = Annotations.from_answers(np.array([[0, 1], [1, 1]]), items=["a", "b"])
    >>> gold_answers(annotations, {"b": "1"})
    array([-1,  1], dtype=int16)
    """
    n_items, n_classes = len(annotations), len(annotations.classes)
    known = np.full(n_items, MISSING_LABEL, dtype=np.int16)
    if gold is None:
        return known
    if isinstance(gold, str):
        _only_truth(gold)
        return np.asarray(annotations.truth).astype(np.int16)
    if isinstance(gold, Mapping) or _is_frame(gold):
        pairs = _pairs(gold)
        _refuse_contradictions(pairs)
        number = {name: index for index, name in enumerate(annotations.classes)}
        for (item, label), place in zip(pairs, _places(annotations, [item for item, _ in pairs])):
            if label not in number:
                known_names = shorten(annotations.classes, 10)
                raise InputError(f"Gold label of item {item}: {label!r} is not among the classes {known_names}.")
            known[place] = number[label]
        return known
    values = np.asarray(gold)
    if values.shape != (n_items,) or not np.issubdtype(values.dtype, np.integer):
        raise InputError(f"Gold labels must be {n_items} whole numbers, one per item, -1 = unknown.")
    wrong = np.flatnonzero((values < MISSING_LABEL) | (values >= n_classes))
    if len(wrong):
        name, value = annotations.items[wrong[0]], values[wrong[0]]
        raise InputError(f"Gold label of item {name}: {value} lies outside the {n_classes} classes.")
    return values.astype(np.int16)


def _is_frame(gold: Any) -> TypeGuard[pd.DataFrame]:
    pandas = sys.modules.get("pandas")  # whoever holds a table has loaded it
    return pandas is not None and isinstance(gold, pandas.DataFrame)


def _only_truth(gold: str) -> None:
    if gold != "truth":
        raise InputError(f"gold={gold!r} is not known; the only word is 'truth'. Otherwise give the labels.")


def _pairs(gold: pd.DataFrame | Mapping[str, Any]) -> list[tuple[str, str]]:
    import pandas as pd

    if isinstance(gold, Mapping):
        return [(str(item), class_name(label)) for item, label in gold.items() if not pd.isna(label)]
    column = "label" if "label" in gold.columns else "truth"
    if "item" not in gold.columns or column not in gold.columns:
        raise InputError("A table of gold labels needs the columns item and label.")
    return [(str(i), class_name(label)) for i, label in zip(gold["item"], gold[column]) if not pd.isna(label)]


def _refuse_contradictions(pairs: list[tuple[str, str]]) -> None:
    first: dict[str, str] = {}
    clashes = [f"{item} ({first[item]} and {label})" for item, label in pairs if first.setdefault(item, label) != label]
    if clashes:
        raise InputError(f"Gold labels contradict each other: {shorten(clashes)}. Keep one label per item.")


def _places(annotations: Annotations, names: Sequence[str]) -> list[int]:
    place = {item: index for index, item in enumerate(annotations.items)}
    strangers = [str(name) for name in names if str(name) not in place]
    if strangers:
        raise InputError(f"There are gold labels for items that do not exist: {shorten(strangers)}.")
    return [place[str(name)] for name in names]
