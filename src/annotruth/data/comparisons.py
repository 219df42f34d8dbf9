"""Comparisons: who found which of two items the better one."""

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
class Comparisons:
    """Several raters' choices between two items, shown on the left and on the right. Arrays have an entry per answer.

    Attributes
    ----------
    items, raters : names, in order
    left, right, rater : (answers,) int, positions in these names
    left_better : (answers,) bool, whether the item on the left was chosen
    """

    table_name: ClassVar[str] = "table of comparisons"
    methods: ClassVar[tuple[str, ...]] = ("noisy-bradley-terry", "bradley-terry")
    columns: ClassVar[Columns] = {
        "item_left": ("item_left", "left"),
        "item_right": ("item_right", "right"),
        "rater": SYNONYMS["rater"],
        "better": ("better", "winner", "label"),
    }

    items: tuple[str, ...]
    raters: tuple[str, ...]
    left: np.ndarray
    right: np.ndarray
    rater: np.ndarray
    left_better: np.ndarray

    def __post_init__(self) -> None:
        for names, what in ((self.items, "item"), (self.raters, "rater")):
            unique_names(names, what)
        if not len(self.left) == len(self.right) == len(self.rater) == len(self.left_better):
            raise InputError("Comparisons need an item on the left, one on the right, a rater and a choice each.")
        for numbers, count, what in (
            (self.left, len(self.items), "item"), (self.right, len(self.items), "item"),
            (self.rater, len(self.raters), "rater"),
        ):  # fmt: skip
            refuse_outside(numbers, count, what)
        same = np.flatnonzero(self.left == self.right)
        if len(same):
            raise InputError(
                f"Row {same[0] + 1} compares {self.items[self.left[same[0]]]} with itself. Remove the row, or correct "
                "one of the two items."
            )

    def __len__(self) -> int:
        return len(self.left)

    def __repr__(self) -> str:
        return f"Comparisons({len(self)} answers: {len(self.items)} items, {len(self.raters)} raters)"

    @classmethod
    def from_table(cls, frame: pd.DataFrame) -> Comparisons:
        """From a table with the columns item_left, item_right, rater, better: one row per answer.

        ``better`` is the name of the better item, or "left" or "right". Crowd-kit's columns (left, right, worker,
        label) are taken, too. Raters may compare the same items several times.

        Examples
        --------
        >>> import pandas as pd
        >>> rows = [("a", "b", "ann", "a"), ("c", "a", "ann", "right")]
        >>> frame = pd.DataFrame(rows, columns=["item_left", "item_right", "rater", "better"])
        >>> Comparisons.from_table(frame)
        Comparisons(2 answers: 3 items, 1 raters)
        """
        import pandas as pd

        found = take_columns(frame, cls.columns, cls.table_name)
        rater, raters = number_names(found["rater"], "rater", cls.table_name)
        left, left_names = number_names(found["item_left"], "item on the left", cls.table_name)
        right, right_names = number_names(found["item_right"], "item on the right", cls.table_name)
        better, chosen = number_names(found["better"], "better item (leave out ties)", cls.table_name)
        position = {name: number for number, name in enumerate(dict.fromkeys([*left_names, *right_names]))}
        left, right = (
            pd.Series(names).map(position).to_numpy()[codes]
            for names, codes in ((left_names, left), (right_names, right))
        )
        side = {"left": -1, "right": -2}
        choice = np.array([position.get(name, side.get(name.lower(), -3)) for name in chosen])[better]
        is_left, is_right = (choice == left) | (choice == -1), (choice == right) | (choice == -2)
        strange = np.flatnonzero(~(is_left | is_right))
        if len(strange):
            row, items = int(strange[0]), list(position)
            raise InputError(
                f"Row {row + 1} compares {items[left[row]]} and {items[right[row]]}, but the better one is said to be "
                f"{chosen[better[row]]}. Name one of the two (or left, or right); leave out ties."
            )
        return cls(tuple(position), raters, left, right, rater, is_left)
