"""Findings: who saw which of several things in which item; an item may have none of them, one, or many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from annotruth.data.answers import SYNONYMS, class_name
from annotruth.data.long_tables import Columns, number_names, refuse_outside, take_columns
from annotruth.errors import InputError
from annotruth.validation import one_of, unique_names

if TYPE_CHECKING:
    import pandas as pd

SEPARATOR = "|"
_YES, _NO = ("1", "true", "yes", "y", "present"), ("0", "false", "no", "n", "absent")


@dataclass(frozen=True)
class Findings:
    """Several raters' findings in the same items. Arrays have an entry per answer, sorted by item, rater, finding.

    Attributes
    ----------
    items, raters, findings : names, in order
    item, rater, finding : (answers,) int, positions in these names; what a rater was not asked has no entry
    present : (answers,) bool, whether the rater saw the finding in the item
    """

    table_name: ClassVar[str] = "table of findings"
    methods: ClassVar[tuple[str, ...]] = ("multi-label",)
    columns: ClassVar[Columns] = {
        "item": SYNONYMS["item"],
        "rater": SYNONYMS["rater"],
        "findings": ("findings", "labels", *SYNONYMS["label"]),
    }
    long_columns: ClassVar[Columns] = {
        "item": SYNONYMS["item"],
        "rater": SYNONYMS["rater"],
        "finding": ("finding",),
        "present": ("present",),
    }

    items: tuple[str, ...]
    raters: tuple[str, ...]
    findings: tuple[str, ...]
    item: np.ndarray
    rater: np.ndarray
    finding: np.ndarray
    present: np.ndarray

    def __post_init__(self) -> None:
        for names, numbers, what in (
            (self.items, self.item, "item"), (self.raters, self.rater, "rater"),
            (self.findings, self.finding, "finding"),
        ):  # fmt: skip
            unique_names(names, what)
            refuse_outside(numbers, len(names), what)
        if not len(self.item) == len(self.rater) == len(self.finding) == len(self.present):
            raise InputError("Findings need an item, a rater, a finding and a yes or no each.")

    def __len__(self) -> int:
        return len(self.item)

    def __repr__(self) -> str:
        size = f"{len(self.items)} items, {len(self.raters)} raters, {len(self.findings)} findings"
        return f"Findings({len(self)} answers: {size})"

    @classmethod
    def from_table(cls, frame: pd.DataFrame, duplicates: str = "error") -> Findings:
        """From a table with the columns item, rater, findings, or item, rater, finding, present.

        In the first, a row holds all that a rater saw in an item, with "|" in between, and nothing where the rater
        looked and saw nothing; all that anybody ever saw was asked for. In the second, a row is one question: present
        is 1 or 0, or yes or no; what has no row was not asked.

        Parameters
        ----------
        duplicates : what to do when a rater says two things of the same: "error", or "keep-last" as in the table

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"item": ["a", "b"], "rater": ["ann", "ann"], "findings": ["cyst|scar", None]})
        >>> found = Findings.from_table(frame)
        >>> found
        Findings(4 answers: 2 items, 1 raters, 2 findings)
        >>> found.present
        array([ True,  True, False, False])
        """
        one_of(duplicates, ("error", "keep-last"), "way with duplicates")
        parts = _long(cls, frame) if "finding" in frame and "present" in frame else _joined(cls, frame)
        items, raters, findings, item, rater, finding, present = parts
        order = np.lexsort((finding, rater, item))  # stable: the last row of a run is the last in the table
        item, rater, finding, present = item[order], rater[order], finding[order], present[order]
        again = (np.diff(item) == 0) & (np.diff(rater) == 0) & (np.diff(finding) == 0)
        differ = np.flatnonzero(again & (present[1:] != present[:-1]))
        if len(differ) and duplicates == "error":
            at = differ[0]
            raise InputError(
                f"Rater {raters[rater[at]]} says both that {findings[finding[at]]} is in {items[item[at]]} and that it "
                f"is not ({len(differ)} such answers in all). Remove the wrong rows, or accept the last of each: "
                "duplicates='keep-last', --duplicates keep-last."
            )
        last = np.append(~again, True)
        return cls(items, raters, findings, item[last], rater[last], finding[last], present[last])


_Parts = tuple[
    tuple[str, ...], tuple[str, ...], tuple[str, ...], np.ndarray, np.ndarray, np.ndarray, np.ndarray
]  # fmt: skip


def _long(cls: type[Findings], frame: pd.DataFrame) -> _Parts:
    """A row per question."""
    found = take_columns(frame, cls.long_columns, cls.table_name)
    item, items = number_names(found["item"], "item", cls.table_name)
    rater, raters = number_names(found["rater"], "rater", cls.table_name)
    finding, findings = number_names(found["finding"], "finding", cls.table_name)
    said, words = number_names(found["present"], "yes or no (remove what was not asked)", cls.table_name)
    strange = [word for word in words if word.lower() not in (*_YES, *_NO)]
    if strange:
        row = int(np.flatnonzero(said == words.index(strange[0]))[0]) + 1
        raise InputError(f"Row {row} of the {cls.table_name}: present is 1 or 0, or yes or no, not {strange[0]!r}.")
    return items, raters, findings, item, rater, finding, np.array([word.lower() in _YES for word in words])[said]


def _joined(cls: type[Findings], frame: pd.DataFrame) -> _Parts:
    """A row per rater and item, with all findings in one cell."""
    import pandas as pd

    found = take_columns(frame, cls.columns, cls.table_name)
    item, items = number_names(found["item"], "item", cls.table_name)
    rater, raters = number_names(found["rater"], "rater", cls.table_name)
    codes, cells = pd.factorize(found["findings"].fillna(""))
    seen = [[part.strip() for part in class_name(cell).split(SEPARATOR) if part.strip()] for cell in cells]
    findings = tuple(sorted({name for names in seen for name in names}))
    if not findings:
        raise InputError(f"Nobody saw anything: the column of findings is empty in every row of the {cls.table_name}.")
    position = {name: number for number, name in enumerate(findings)}
    has = np.zeros((len(cells), len(findings)), dtype=bool)
    for number, names in enumerate(seen):
        has[number, [position[name] for name in names]] = True
    n_rows, n_findings = len(codes), len(findings)
    return (
        items, raters, findings, np.repeat(item, n_findings), np.repeat(rater, n_findings),
        np.tile(np.arange(n_findings), n_rows), has[codes].ravel(),
    )  # fmt: skip
