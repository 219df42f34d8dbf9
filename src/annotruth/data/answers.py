"""Class labels as a sparse table: who answered what about which item, ten bytes an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from annotruth.errors import InputError, shorten
from annotruth.validation import MISSING_LABEL, one_of, unique_names

if TYPE_CHECKING:
    import pandas as pd

SYNONYMS = {
    "item": ("item", "task", "image", "case"),
    "rater": ("rater", "worker", "annotator"),
    "label": ("label", "answer"),
}
MAX_TABLE_CLASSES = 2**15 - 1


@dataclass(frozen=True)
class Answers:
    """Answers sorted by item, then rater. The three arrays run in parallel, one entry per answer.

    Attributes
    ----------
    item, rater : (answers,) int32, positions in the names of items and raters
    label : (answers,) int16, position in the class names
    """

    item: np.ndarray
    rater: np.ndarray
    label: np.ndarray

    def __len__(self) -> int:
        return len(self.item)

    def take(self, items: np.ndarray, n_items: int) -> Answers:
        """Keep the answers on some items, renumbered in the order given."""
        new_position = np.full(n_items, -1, dtype=np.int32)
        new_position[items] = np.arange(len(items), dtype=np.int32)
        item = new_position[self.item]
        kept = item >= 0
        return sort_answers(item[kept], self.rater[kept], self.label[kept])

    def take_raters(self, raters: np.ndarray, n_raters: int) -> Answers:
        """Keep the answers of some raters, renumbered in the order given."""
        new_position = np.full(n_raters, -1, dtype=np.int32)
        new_position[raters] = np.arange(len(raters), dtype=np.int32)
        rater = new_position[self.rater]
        kept = rater >= 0
        return sort_answers(self.item[kept], rater[kept], self.label[kept])

    def matrix(self, n_items: int, n_raters: int) -> np.ndarray:
        """Give the dense table (items, raters), -1 = missing. Only for tables small enough to be dense."""
        dense = np.full((n_items, n_raters), MISSING_LABEL, dtype=np.int16)
        dense[self.item, self.rater] = self.label
        return dense


def sort_answers(item: np.ndarray, rater: np.ndarray, label: np.ndarray) -> Answers:
    """Put answers into canonical order and compact types."""
    order = np.lexsort((rater, item)) if not _sorted(item, rater) else slice(None)
    return Answers(
        np.ascontiguousarray(item[order], dtype=np.int32),
        np.ascontiguousarray(rater[order], dtype=np.int32),
        np.ascontiguousarray(label[order], dtype=np.int16),
    )


def truth_numbers(truth: Mapping[str, Any], items: Sequence[str], classes: Sequence[str]) -> np.ndarray:
    """Class numbers (items,) of true labels by item name, -1 = unknown.

    Examples
    --------
    >>> truth_numbers({"b": "dog"}, ["a", "b"], ["cat", "dog"])
    array([-1,  1], dtype=int16)
    """
    import pandas as pd

    position = {name: index for index, name in enumerate(classes)}
    given = {str(item): class_name(label) for item, label in truth.items() if not pd.isna(label)}
    values = [given.get(item) for item in items]
    strangers = {value for value in values if value is not None and value not in position}
    if strangers:
        raise InputError(f"The truth names classes nobody answered: {shorten(sorted(strangers))}; give classes=.")
    return np.array([MISSING_LABEL if value is None else position[value] for value in values], dtype=np.int16)


def answers_from_matrix(matrix: np.ndarray, n_classes: int | None) -> tuple[Answers, int]:
    """Read a dense table (items, raters) of class numbers, -1 = missing; give answers and class count."""
    matrix = np.asarray(matrix)
    if matrix.ndim != 2 or not np.issubdtype(matrix.dtype, np.integer):
        raise InputError(
            f"Answers must be a table (items, raters) of whole numbers, not {matrix.dtype} of shape {matrix.shape}."
        )
    item, rater = np.nonzero(matrix != MISSING_LABEL)
    label = matrix[item, rater]
    highest = int(label.max()) if len(label) else -1
    if max(highest, n_classes or 0) > MAX_TABLE_CLASSES:
        raise InputError(f"{highest + 1} classes are too many; at most {MAX_TABLE_CLASSES} can be told apart.")
    n_classes = max(highest + 1, 1) if n_classes is None else n_classes
    wrong = (label < 0) | (label >= n_classes)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"Item {item[at]}, rater {rater[at]}: label {label[at]} lies outside the {n_classes} classes "
            f"(0 to {n_classes - 1}; {MISSING_LABEL} = missing)."
        )
    return sort_answers(item, rater, label), n_classes


def answers_from_frame(
    frame: pd.DataFrame, classes: Sequence[Any] | None, duplicates: str, items: Sequence[str] | None = None
) -> tuple[Answers, tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Read a long table with columns item, rater, label; give answers and names of items, raters, classes.

    Names stand in the order of first appearance, class names sorted (whole numbers by value).
    """
    item_codes, item_names = _codes(_column(frame, "item"), "item", items)
    rater_codes, rater_names = _codes(_column(frame, "rater"), "rater", None)
    label_codes, class_names = _class_codes(_column(frame, "label"), classes)
    answers = merge_answers(item_codes, rater_codes, label_codes, duplicates, item_names, rater_names, class_names)
    return answers, item_names, rater_names, class_names


def _column(frame: pd.DataFrame, name: str) -> pd.Series:
    found = [column for column in SYNONYMS[name] if column in frame.columns]
    if not found:
        raise InputError(
            f"The label table needs the columns item, rater, label; there is no {name!r} "
            f"(nor {shorten(SYNONYMS[name][1:])}) among {shorten([str(c) for c in frame.columns], 10)}."
        )
    return frame[found[0]]


def _factorize(column: pd.Series) -> tuple[np.ndarray, Any]:
    """Number the distinct values of a column; -1 where a cell holds nothing, as NaN or as empty text."""
    import pandas as pd

    codes, values = pd.factorize(column)
    empty = [code for code, value in enumerate(values) if isinstance(value, str) and value == ""]
    return (np.where(np.isin(codes, empty), -1, codes) if empty else codes), values


def _codes(column: pd.Series, what: str, known: Sequence[str] | None) -> tuple[np.ndarray, tuple[str, ...]]:
    codes, values = _factorize(column)
    if (codes < 0).any():
        row = int(np.flatnonzero(codes < 0)[0])
        raise InputError(f"Row {row} of the label table has no {what}; fill it in or remove the row.")
    names = unique_names([str(value) for value in values], what)
    if known is None:
        return codes.astype(np.int32), names
    position = {name: index for index, name in enumerate(known)}
    strangers = [name for name in names if name not in position]
    if strangers:
        raise InputError(
            f"Unknown {what}s in the label table, {len(strangers)} of {len(names)}: {shorten(strangers)}. "
            f"Remove their answers, or add these {what}s."
        )
    return np.array([position[name] for name in names], dtype=np.int32)[codes], tuple(known)


def _class_codes(column: pd.Series, classes: Sequence[Any] | None) -> tuple[np.ndarray, tuple[str, ...]]:
    codes, values = _factorize(column)
    if (codes < 0).any():
        row = int(np.flatnonzero(codes < 0)[0])
        raise InputError(f"Row {row} of the label table has no label; remove the row if the rater did not answer.")
    found = [class_name(value) for value in values]
    names = name_classes(found, classes)
    position = {name: index for index, name in enumerate(names)}
    strangers = [name for name in found if name not in position]
    if strangers:
        row = int(np.flatnonzero(codes == found.index(strangers[0]))[0])
        raise InputError(
            f"Row {row} of the label table: label {strangers[0]!r} is not among the classes {shorten(names, 10)}."
        )
    return np.array([position[name] for name in found] or [0], dtype=np.int16)[codes], names


def class_name(value: Any) -> str:
    """Name a class after its value; pandas turns whole numbers into floats beside missing values, so 1.0 is "1"."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def name_classes(found: Iterable[str], given: Sequence[Any] | None = None) -> tuple[str, ...]:
    """Give the class names: as they are given, or those found, numbers by value before words by letter."""
    if given is None:
        names = tuple(sorted(set(found), key=_natural))
    else:
        names = unique_names([str(name) for name in given], "class")
    if len(names) > MAX_TABLE_CLASSES:
        raise InputError(f"{len(names)} classes are too many; at most {MAX_TABLE_CLASSES} can be told apart.")
    return names


def _natural(name: str) -> tuple[int, float, str]:
    try:
        return (0, float(name), name)
    except ValueError:
        return (1, 0.0, name)


def merge_answers(
    item: np.ndarray,
    rater: np.ndarray,
    label: np.ndarray,
    duplicates: str,
    item_names: Sequence[str],
    rater_names: Sequence[str],
    class_names: Sequence[str],
) -> Answers:
    """Merge repeated (item, rater) rows; rows that contradict each other are an error unless the last is kept."""
    one_of(duplicates, ("error", "keep-last"), "way with duplicates")
    answers = sort_answers(item, rater, label)

    def contradiction(places: np.ndarray) -> InputError:
        listed = [
            f"{item_names[answers.item[i]]} by {rater_names[answers.rater[i]]} "
            f"({class_names[answers.label[i]]} and {class_names[answers.label[i + 1]]})"
            for i in places[:10]
        ]
        more = f" and {len(places) - 10} more" if len(places) > 10 else ""
        return InputError(
            f"The same rater gave the same item different labels: {'; '.join(listed)}{more}. "
            "Remove the wrong rows, or accept the last of each: duplicates='keep-last', --duplicates keep-last."
        )

    return drop_repeats(answers, contradiction if duplicates != "keep-last" else None)


def drop_repeats(answers: Answers, contradiction: Callable[[np.ndarray], InputError] | None) -> Answers:
    """Keep the last of a rater's answers on an item.

    Parameters
    ----------
    contradiction : makes the error to raise where such answers differ, of the places of the earlier ones; None = none

    Examples
    --------
    >>> twice = Answers(np.array([0, 0], np.int32), np.array([1, 1], np.int32), np.array([2, 0], np.int16))
    >>> drop_repeats(twice, None).label
    array([0], dtype=int16)
    """
    again = (answers.item[1:] == answers.item[:-1]) & (answers.rater[1:] == answers.rater[:-1])
    if not again.any():
        return answers
    differ = np.flatnonzero(again & (answers.label[1:] != answers.label[:-1]))
    if len(differ) and contradiction is not None:
        raise contradiction(differ)
    last = np.append(~again, True)  # the sort is stable, so the last row of a run is the last in the table
    return Answers(answers.item[last], answers.rater[last], answers.label[last])


def _sorted(item: np.ndarray, rater: np.ndarray) -> bool:
    if len(item) < 2:
        return True
    step = np.diff(item)
    return bool((step >= 0).all() and (np.diff(rater)[step == 0] >= 0).all())
