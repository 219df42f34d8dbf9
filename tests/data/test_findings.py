"""Findings from tables of both forms, and what is wrong with them."""

from __future__ import annotations

import pandas as pd
import pytest

from annotruth import Findings
from annotruth.errors import InputError

LONG = ["item", "rater", "finding", "present"]


def _said(found: Findings) -> dict[tuple[str, str, str], bool]:
    cells = zip(found.item, found.rater, found.finding, found.present)
    return {(found.items[i], found.raters[r], found.findings[f]): bool(p) for i, r, f, p in cells}


def test_both_forms_of_the_table_say_the_same() -> None:
    joined = pd.DataFrame({"item": ["x", "y"], "rater": "ann", "findings": ["scar | cyst", None]})
    rows = [
        ("x", "ann", "cyst", "yes"),
        ("y", "ann", "cyst", 0),
        ("x", "ann", "scar", True),
        ("y", "ann", "scar", "no"),
    ]
    one, other = Findings.from_table(joined), Findings.from_table(pd.DataFrame(rows, columns=LONG))
    assert _said(one) == _said(other)
    assert one.findings == ("cyst", "scar")
    assert _said(one)["x", "ann", "scar"]
    assert not _said(one)["y", "ann", "cyst"]


def test_what_was_not_asked_has_no_answer() -> None:
    rows = [("x", "ann", "cyst", 1), ("y", "ann", "scar", 0.0)]
    assert len(Findings.from_table(pd.DataFrame(rows, columns=LONG))) == 2


def test_contradictions_are_refused_or_the_last_counts() -> None:
    frame = pd.DataFrame({"item": "x", "rater": "ann", "label": ["cyst|scar", "scar", "scar"]})
    with pytest.raises(InputError, match=r"Rater ann says both that cyst is in x and that it is not \(1 such"):
        Findings.from_table(frame)
    found = Findings.from_table(frame, duplicates="keep-last")
    assert _said(found) == {("x", "ann", "cyst"): False, ("x", "ann", "scar"): True}


def test_what_is_neither_yes_nor_no_is_refused_by_row() -> None:
    rows = [("x", "ann", "cyst", 1), ("y", "ann", "cyst", "perhaps")]
    with pytest.raises(InputError, match=r"Row 2 .* present is 1 or 0, or yes or no, not 'perhaps'"):
        Findings.from_table(pd.DataFrame(rows, columns=LONG))


def test_a_table_without_any_finding_is_refused() -> None:
    with pytest.raises(InputError, match="Nobody saw anything"):
        Findings.from_table(pd.DataFrame({"item": ["x"], "rater": ["ann"], "findings": [""]}))
    with pytest.raises(InputError, match="there is no 'findings'"):
        Findings.from_table(pd.DataFrame({"item": ["x"], "rater": ["ann"]}))
