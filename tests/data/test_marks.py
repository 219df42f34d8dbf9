"""Marks from tables, and what is wrong with them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from annotruth import Marks
from annotruth.errors import InputError


@pytest.mark.parametrize("name", ["value", "score", "label"])
def test_numbers_are_taken_under_several_names_also_as_text(name: str) -> None:
    found = Marks.from_table(pd.DataFrame({"item": ["a", "b"], "rater": ["ann", "ann"], name: ["1.5", 2]}))
    assert found.value.tolist() == [1.5, 2.0]
    assert len(found) == 2


@pytest.mark.parametrize("value", ["mild", None, np.inf, ""])
def test_what_is_no_number_is_refused_by_row_item_and_rater(value: object) -> None:
    frame = pd.DataFrame({"item": ["a", "b"], "rater": ["ann", "bob"], "value": [1.0, value]})
    with pytest.raises(InputError, match=r"Row 2 .* \(item b, rater bob\): .* no finite number.*dawid-skene"):
        Marks.from_table(frame)


def test_arrays_that_do_not_fit_are_refused() -> None:
    zeros = np.zeros(2, dtype=int)
    with pytest.raises(InputError, match="a value each"):
        Marks(("a",), ("r",), zeros, zeros, np.ones(3))
    with pytest.raises(InputError, match="Item a, rater r: nan"):
        Marks(("a",), ("r",), zeros, zeros, np.array([1.0, np.nan]))
