"""Objects: what they are made of, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from annotruth.data import Objects
from annotruth.errors import InputError

FRAME = pd.DataFrame(
    {"item": ["a", "a", "b"], "rater": ["ann", "bob", "ann"], "label": ["cat", "dog", "cat"], "x1": [0, 1, 2],
     "y1": [0, 1, 2], "x2": [5, 6, 7], "y2": [5, 6, 7]}
)  # fmt: skip


def test_a_table_comes_back_as_it_was() -> None:
    objects = Objects.from_table(FRAME)
    pd.testing.assert_frame_equal(objects.table(), FRAME, check_dtype=False)
    assert objects.labelled.all(), "everybody looked at everything"


def test_who_looked_but_marked_nothing() -> None:
    looked = pd.DataFrame({"item": ["a", "c"], "rater": ["ann", "bob"]})
    objects = Objects.from_table(FRAME, looked_at=looked)
    assert objects.items == ("a", "b", "c")
    np.testing.assert_array_equal(objects.labelled, [[True, True], [True, False], [False, True]])


def test_points_are_boxes_without_size() -> None:
    points = Objects.from_table(FRAME[["item", "rater", "label"]].assign(x=[1, 2, 3], y=[4, 5, 6]))
    np.testing.assert_array_equal(points.boxes[1], [2, 5, 2, 5])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x2": [5, 0, 7]}, r"Item a, rater bob, object 1: the box ends before it begins"),
        ({"x2": [5, np.inf, 7]}, r"Item a, rater bob, object 1: the box holds no numbers"),
        ({"label": ["cat", None, "cat"]}, "Row 1 of the table of objects is not filled"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, list[object]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Objects.from_table(FRAME.assign(**change))


def test_missing_columns_and_unknown_classes_are_named() -> None:
    with pytest.raises(InputError, match="there is no x, y among item, rater, label"):
        Objects.from_table(FRAME[["item", "rater", "label"]])
    with pytest.raises(InputError, match="unknown class: dog"):
        Objects.from_table(FRAME, classes=["cat"])
    objects = Objects.from_table(FRAME)
    with pytest.raises(InputError, match="area and box differ in size"):
        Objects(*(getattr(objects, name) for name in ("items", "raters", "classes", "item", "rater", "label", "boxes",
                  "labelled")), (None, np.ones((2, 2), dtype=bool), None))  # fmt: skip
