"""Comparisons from tables, and what is wrong with them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from annotruth import Comparisons
from annotruth.errors import InputError

HEAD = ["item_left", "item_right", "rater", "better"]


def test_the_better_item_is_named_or_is_a_side() -> None:
    rows = [("a", "b", "ann", "b"), ("c", "a", "bob", "left"), ("b", "c", "ann", "RIGHT")]
    found = Comparisons.from_table(pd.DataFrame(rows, columns=HEAD))
    assert found.items == ("a", "c", "b")
    assert found.raters == ("ann", "bob")
    assert found.left_better.tolist() == [False, True, False]
    assert [found.items[n] for n in found.right] == ["b", "a", "c"]


def test_an_item_called_left_is_an_item() -> None:
    found = Comparisons.from_table(pd.DataFrame([("up", "left", "ann", "left")], columns=HEAD))
    assert found.left_better.tolist() == [False]


def test_numbers_are_names_whatever_pandas_makes_of_them() -> None:
    frame = pd.DataFrame({"left": [1, 2], "right": [2.0, 3.0], "worker": [7, 7], "label": [1, 3]})
    found = Comparisons.from_table(frame)
    assert found.items == ("1", "2", "3")
    assert found.left_better.tolist() == [True, False]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (("a", "b", "ann", "c"), "Row 2 compares a and b, but the better one is said to be c"),
        (("a", "b", "ann", "tie"), "leave out ties"),
        (("a", "b", "ann", None), r"Row 2 .* has no better item \(leave out ties\)"),
        (("a", "a", "ann", "a"), "Row 2 compares a with itself"),
        (("a", "", "ann", "a"), "Row 2 .* has no item on the right"),
        (("a", "b", np.nan, "a"), "Row 2 .* has no rater"),
    ],
)
def test_rows_that_make_no_sense_are_refused_by_number(row: tuple[object, ...], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Comparisons.from_table(pd.DataFrame([("a", "b", "ann", "a"), row], columns=HEAD))


def test_columns_that_are_lacking_are_named() -> None:
    with pytest.raises(InputError, match=r"there is no 'better' \(nor winner, label\) among item_left, item_right"):
        Comparisons.from_table(pd.DataFrame([("a", "b", "ann")], columns=HEAD[:3]))
    with pytest.raises(InputError, match="has a head but no row"):
        Comparisons.from_table(pd.DataFrame([], columns=HEAD))


def test_arrays_of_other_lengths_and_strange_numbers_are_refused() -> None:
    one, two = np.array([0]), np.array([0, 1])
    with pytest.raises(InputError, match="a choice each"):
        Comparisons(("a", "b"), ("r",), two, two[::-1], one, two == 1)
    with pytest.raises(InputError, match="item number 5, and there are 2"):
        Comparisons(("a", "b"), ("r",), one, one + 5, one, one == 0)
