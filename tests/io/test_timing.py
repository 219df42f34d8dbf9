"""Times and durations of answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from annotruth.errors import InputError
from annotruth.io.tables import load_table
from annotruth.io.timing import read_times


def test_times_follow_the_order_of_the_answers_and_the_last_row_counts(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(
        "item,rater,label,submitted,lead_time\nb,bob,x,1970-01-01T00:00:30Z,3\na,ann,x,1970-01-01T00:00:10+00:00,1\n"
        "b,ann,y,,\nb,bob,x,1970-01-01T01:00:40+01:00,9\n"
    )
    found = read_times(path, load_table(path))
    assert found is not None
    # Items and raters stand in order of first appearance: b by bob, b by ann, a by ann.
    np.testing.assert_array_equal(found.time, [40, np.nan, 10])
    np.testing.assert_array_equal(found.seconds, [9, np.nan, 1])


def test_a_table_without_times_has_none(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("item,rater,label\na,ann,x\n")
    assert read_times(path, load_table(path)) is None


def test_what_is_no_time_is_named(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("item,rater,label,time\na,ann,x,yesterday\n")
    with pytest.raises(InputError, match=r"labels.csv: the column .time. holds what is no time: yesterday"):
        read_times(path, load_table(path))
