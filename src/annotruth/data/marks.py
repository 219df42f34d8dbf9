"""Marks: who gave which item which number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from annotruth.data.answers import SYNONYMS
from annotruth.data.long_tables import Columns, number_names, refuse_outside, take_columns
from annotruth.errors import InputError
from annotruth.validation import unique_names

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Marks:
    """Several raters' numbers for the same items: scores, sizes, positions. Arrays have an entry per answer.

    Attributes
    ----------
    items, raters : names, in order
    item, rater : (answers,) int, positions in these names
    value : (answers,) float64, finite
    """

    table_name: ClassVar[str] = "table of marks"
    methods: ClassVar[tuple[str, ...]] = ("continuous-staple",)
    columns: ClassVar[Columns] = {
        "item": SYNONYMS["item"],
        "rater": SYNONYMS["rater"],
        "value": ("value", "mark", "score", "rating", "measurement", *SYNONYMS["label"]),
    }

    items: tuple[str, ...]
    raters: tuple[str, ...]
    item: np.ndarray
    rater: np.ndarray
    value: np.ndarray

    def __post_init__(self) -> None:
        for names, what in ((self.items, "item"), (self.raters, "rater")):
            unique_names(names, what)
        if not len(self.item) == len(self.rater) == len(self.value):
            raise InputError("Marks need an item, a rater and a value each.")
        refuse_outside(self.item, len(self.items), "item")
        refuse_outside(self.rater, len(self.raters), "rater")
        strange = np.flatnonzero(~np.isfinite(self.value))
        if len(strange):
            item, rater = self.items[self.item[strange[0]]], self.raters[self.rater[strange[0]]]
            raise InputError(f"Item {item}, rater {rater}: {self.value[strange[0]]} is no finite number.")

    def __len__(self) -> int:
        return len(self.item)

    def __repr__(self) -> str:
        return f"Marks({len(self)} answers: {len(self.items)} items, {len(self.raters)} raters)"

    @classmethod
    def from_table(cls, frame: pd.DataFrame) -> Marks:
        """From a table with the columns item, rater, value: one row per answer.

        A rater may measure an item several times; every row counts.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"item": ["a", "a", "b"], "rater": ["ann", "bob", "ann"], "value": [3.5, 4.1, 2.0]})
        >>> Marks.from_table(frame)
        Marks(3 answers: 2 items, 2 raters)
        """
        import pandas as pd

        found = take_columns(frame, cls.columns, cls.table_name)
        item, items = number_names(found["item"], "item", cls.table_name)
        rater, raters = number_names(found["rater"], "rater", cls.table_name)
        value = pd.to_numeric(found["value"], errors="coerce").to_numpy(dtype=np.float64)
        strange = np.flatnonzero(~np.isfinite(value))
        if len(strange):
            row = int(strange[0])
            said = found["value"].iloc[row]
            raise InputError(
                f"Row {row + 1} of the {cls.table_name} (item {items[item[row]]}, rater {raters[rater[row]]}): "
                f"{said!r} is no finite number. Correct it, or remove the row; if values are words, they are classes: "
                "take dawid-skene."
            )
        return cls(items, raters, item, rater, value)
