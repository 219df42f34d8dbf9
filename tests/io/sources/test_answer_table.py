"""Tables of other people's: other names of columns, a column per rater, other line ends."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.io import find_source, import_source


def test_columns_are_found_by_usual_names(example_table: Path, tmp_path: Path) -> None:
    imported = import_source(example_table, tmp_path / "out")
    assert imported.notes == ["The item is Question ID, the rater Worker_ID, the label Response."]
    assert at.load(tmp_path / "out").items == ("1", "2")
    assert pd.read_csv(tmp_path / "out" / "labels.csv")["seconds"].tolist() == [3, 5, 4, 2]


def test_columns_of_any_name_are_named(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_bytes(b"song\twho\tgenre\tgold\ra\tx\trock\tpop\ra\ty\tpop\tpop\rb\tx\tpop\t\r")
    loaded = at.load(path, source="table", item="song", rater="who", label="genre")
    np.testing.assert_array_equal(loaded.answer_matrix(), [[1, 0], [0, -1]])
    assert loaded.truth.tolist() == [0, -1]
    with pytest.raises(InputError, match="no column 'singer'"):
        at.load(path, source="table", item="singer")
    with pytest.raises(InputError, match=r"which column is the item and the label.*--item COLUMN --label COLUMN"):
        at.load(path, source="table", rater="who")
    with pytest.raises(InputError, match="one column cannot be two"):
        at.load(path, source="table", item="song", rater="song", label="genre")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_column_for_each_rater(tmp_path: Path, suffix: str) -> None:
    frame = pd.DataFrame(
        {"name": ["a", "b", "c"], "ann": ["x", "y", "x"], "bob": ["x", None, "y"], "truth": ["x", "y", "y"]}
    )
    path = tmp_path / f"t.{suffix}"
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    loaded = at.load(path)
    assert loaded.raters == ("ann", "bob")
    np.testing.assert_array_equal(loaded.answer_matrix(), [[0, 0], [1, -1], [0, 1]])
    assert loaded.truth.tolist() == [0, 1, 1]
    assert at.load(path, raters="ann", item="name").raters == ("ann",)


def test_rows_without_a_name_are_numbered_and_items_stand_once(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("ann,bob\nx,y\nx,x\ny,x\n")
    assert at.load(path).items == ("row_1", "row_2", "row_3")
    path.write_text("item,ann,bob\na,x,y\na,x,x\n")
    with pytest.raises(InputError, match="a has two rows"):
        at.load(path, source="table", item="item", raters="ann,bob")


def test_a_table_of_ours_stays_one_and_a_table_of_measurements_is_none(tmp_path: Path) -> None:
    ours = tmp_path / "ours.csv"
    ours.write_text("item,worker,label\na,x,1\n")
    assert find_source(ours).key == "label-table"
    numbers = tmp_path / "numbers.csv"
    pd.DataFrame(np.random.default_rng(0).random((40, 3)), columns=["p", "q", "r"]).to_csv(numbers, index=False)
    assert find_source(numbers).key == "label-table"
    with pytest.raises(InputError, match="nor a column for each of several raters"):
        at.load(numbers, source="table")
    ours.rename(tmp_path / "ours.tsv")
    assert at.load(tmp_path / "ours.tsv").raters == ("x",)
