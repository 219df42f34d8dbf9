"""Label tables: CSV and Parquet, with other names of columns, odd spellings and mistakes."""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotruth import Annotations
from annotruth.data.answers import sort_answers
from annotruth.errors import AnnotruthError, InputError
from annotruth.io import load, write_table, write_truth_table
from annotruth.io.tables import load_table

ROWS = pd.DataFrame(
    {"item": ["b", "a", "b", "c"], "rater": ["bob", "ann", "ann", "bob"], "label": ["dog", "cat", "cat", "dog"]}
)


def _same(one: Annotations, other: Annotations) -> bool:
    return (one.items, one.raters, one.classes) == (other.items, other.raters, other.classes) and all(
        np.array_equal(getattr(one.answers, name), getattr(other.answers, name)) for name in ("item", "rater", "label")
    )


@pytest.mark.parametrize("suffix", [".csv", ".CSV", ".parquet"])
def test_a_file_gives_what_the_frame_gives(tmp_path, suffix):
    path = tmp_path / f"answers{suffix}"
    ROWS.to_parquet(path) if suffix == ".parquet" else ROWS.to_csv(path, index=False)
    found = load(path)
    assert _same(found, Annotations.from_table(ROWS))
    assert found.items == ("b", "a", "c")
    np.testing.assert_array_equal(found.answer_matrix(), [[1, 0], [-1, 0], [1, -1]])


@pytest.mark.parametrize(
    "columns", [("task", "worker", "label"), ("image", "annotator", "answer"), ("case", "rater", "label")]
)
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_other_names_orders_and_delimiters(tmp_path, columns, delimiter):
    frame = ROWS.set_axis(columns, axis=1).assign(time=3)[["time", *reversed(columns)]]
    frame.to_csv(tmp_path / "a.csv", index=False, sep=delimiter)
    assert _same(load(tmp_path / "a.csv"), Annotations.from_table(ROWS))


def test_commas_in_a_quoted_head_are_no_delimiters(tmp_path):
    (tmp_path / "a.csv").write_text('item;rater;label;"how sure, from 1, lowest, to 5"\na;ann;x;3\n')
    assert load(tmp_path / "a.csv").raters == ("ann",)


def test_csv_keeps_names_as_they_are_written(tmp_path):
    text = '\ufeffitem,rater,label\n007,"Müller, Ann",Läsion\n7,岡田,"a ""b"""\n'
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    found = load(tmp_path / "a.csv")
    assert found.items == ("007", "7")
    assert found.raters == ("Müller, Ann", "岡田")
    assert found.classes == ("Läsion", 'a "b"')


def test_parquet_numbers_become_names(tmp_path):
    frame = pd.DataFrame({"item": [3, 3, 10], "rater": pd.Categorical(["x", "y", "x"]), "label": [1.0, 10.0, 2.0]})
    frame.to_parquet(tmp_path / "a.parquet")
    found = load(tmp_path / "a.parquet")
    assert (found.items, found.classes) == (("3", "10"), ("1", "2", "10"))
    np.testing.assert_array_equal(found.answer_matrix(), [[0, 2], [1, -1]])


def test_many_blocks_and_row_groups_give_one_numbering(tmp_path):
    rng = np.random.default_rng(0)
    pairs = rng.permutation(60_000)
    frame = pd.DataFrame({"item": pairs // 12, "rater": pairs % 12, "label": rng.integers(0, 12, len(pairs))})
    frame["item"] = "a rather long name of an item, so that the file has several blocks " + frame["item"].astype(str)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=7000)
    assert (tmp_path / "a.csv").stat().st_size > 3 * 2**20
    expected = Annotations.from_table(frame)
    assert _same(load(tmp_path / "a.csv"), expected)
    assert _same(load(tmp_path / "a.parquet"), expected)


def test_truth_of_some_items(tmp_path):
    ROWS.to_csv(tmp_path / "a.csv", index=False)
    (tmp_path / "t.csv").write_text("item,truth\nb,cat\nc,wolf\nnot asked,cat\na,\n")
    found = load(tmp_path / "a.csv", truth=tmp_path / "t.csv")
    assert found.classes == ("cat", "dog", "wolf")
    np.testing.assert_array_equal(found.truth, [0, -1, 2])
    (tmp_path / "t.csv").write_text("item,truth\nb,cat\nb,dog\n")
    with pytest.raises(InputError, match=r"t\.csv: b has two truths, cat and dog"):
        load(tmp_path / "a.csv", truth=tmp_path / "t.csv")
    with pytest.raises(InputError, match="truth= goes with a label table"):
        load(tmp_path, truth=tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"item,who,label\na,b,c\n", r"no column 'rater' \(nor worker, annotator\) among item, who, label"),
        (b"", r"the file is empty\. A table has the columns item, rater, label"),
        (b"item,rater,label,label\na,b,c,d\n", r"two columns 'label'\. Rename or remove"),
        (b"item,rater,label\n", r"the table has a head but no row"),
        (b"item,rater,label\na,b,c\na,b\n", r"row 2 has 2 cells where the head has 3 \(a,b\)\. Correct or remove it"),
        ("item,rater,label\na,b,Läsion\n".encode("latin-1"), r"cannot be read as a table .*UTF-8"),
        ("itém,rater,label\na,b,c\n".encode("latin-1"), r"cannot be read as a table .*UTF-8"),
        (b"item,rater,label\na,b,NA\n", r"row 1 has no label"),
        (b"item,rater,label\na,b,c\na,b,d\n", r"a by b \(c and d\)"),
    ],
)
def test_mistakes_name_the_file(tmp_path, content, message):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(InputError, match=r"a\.csv: .*" + message):
        load(tmp_path / "a.csv")


def test_a_damaged_parquet_file_is_named(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(InputError, match=r"a\.parquet: cannot be read as a table .*Was it cut off\? Write it again"):
        load(tmp_path / "a.parquet")


def test_a_parquet_file_with_damage_inside_is_named(tmp_path):
    frame = pd.DataFrame({"item": range(4000), "rater": "ann", "label": "x"})
    frame.to_parquet(tmp_path / "a.parquet", compression="snappy")
    content = bytearray((tmp_path / "a.parquet").read_bytes())
    content[2000:6000] = b"\xff" * 4000
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(InputError, match=r"a\.parquet: cannot be read \(.*Is the file damaged\? Write it again"):
        load(tmp_path / "a.parquet")


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=4)
NOTHING = {"NA", "N/A", "NaN", "nan", "null", "NULL"}


@settings(max_examples=30, deadline=None)
@given(
    matrix=st.integers(1, 5).flatmap(
        lambda raters: st.lists(st.lists(st.integers(-1, 2), min_size=raters, max_size=raters), min_size=1, max_size=6)
    ),
    suffix=st.sampled_from([".csv", ".parquet"]),
    names=st.lists(NAMES.filter(lambda name: name not in NOTHING), min_size=14, max_size=14, unique=True),
)
def test_answers_come_back_as_they_were_written(tmp_path_factory, matrix, suffix, names):
    answers = np.array(matrix)
    answers[0, 0] = 1
    given_ = Annotations.from_answers(
        answers, classes=names[:3], raters=names[3 : 3 + answers.shape[1]], items=names[8 : 8 + len(answers)]
    )
    found = load(write_table(tmp_path_factory.mktemp("tables") / f"a{suffix}", given_))
    for row, rater, label in zip(found.answers.item, found.answers.rater, found.answers.label):
        item, name = given_.items.index(found.items[row]), given_.raters.index(found.raters[rater])
        assert given_.classes[answers[item, name]] == found.classes[label]
    assert len(found.answers) == len(given_.answers)


def test_truth_and_probabilities_as_a_table(tmp_path):
    annotations = Annotations.from_table(ROWS)
    path = write_truth_table(tmp_path / "t.csv", annotations, np.array([1, -1, 0]), np.full((3, 2), 0.5))
    frame = pd.read_csv(path)
    assert list(frame.columns) == ["item", "truth", "probability of cat", "probability of dog"]
    assert frame["truth"].tolist()[::2] == ["dog", "cat"]
    assert frame["truth"].isna().tolist() == [False, True, False]
    write_table(tmp_path / "a.csv", annotations)
    np.testing.assert_array_equal(load(tmp_path / "a.csv", truth=path).truth, [1, -1, 0])


def test_tables_are_not_written_for_masks_nor_under_other_suffixes(tmp_path):
    with pytest.raises(InputError, match=r"a\.txt: a label table is written as \.csv or \.parquet"):
        write_table(tmp_path / "a.txt", Annotations.from_table(ROWS))
    with pytest.raises(AnnotruthError, match="only a label table has answers"):
        write_table(tmp_path / "a.csv", Annotations.from_masks(np.zeros((1, 1, 2, 2), np.uint8)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("empty", [float("nan"), "", None, "nan"])
@pytest.mark.parametrize("column", ["item", "rater", "label"])
def test_empty_cells_of_parquet_are_an_error_that_names_rows(tmp_path, empty, column):
    frame = pd.DataFrame({"item": list("aab"), "rater": list("xyx"), "label": ["cat", "dog", "cat"]}, dtype=object)
    frame.loc[1, column] = empty
    if isinstance(empty, float):
        frame[column] = [1.0, empty, 2.0]
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match=f"row 2 has no {column}"):
        load_table(tmp_path / "a.parquet")


@pytest.mark.parametrize("label", [["cat"], {"name": "cat"}, b"cat"])
def test_parquet_labels_that_are_no_words_or_numbers_are_refused(tmp_path, label):
    pa.parquet.write_table(pa.table({"item": ["a"], "rater": ["x"], "label": [label]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="the column 'label' holds"):
        load_table(tmp_path / "a.parquet")


FORMULAS = ["=1+1", "+cmd|calc", "-2+3", "@SUM(A1)", "\tx", "\rx", "'=quoted", "''@twice"]


def test_names_that_spreadsheets_would_run_are_neutralised_and_read_back(tmp_path):
    annotations = Annotations(
        kind="labels", items=[f"{name}item" for name in FORMULAS], raters=["=rater", "-1"], classes=["@cat", "-2"],
        answers=sort_answers(np.arange(8) % 8, np.arange(8) % 2, np.arange(8) % 2),
    )  # fmt: skip
    answers = write_table(tmp_path / "answers.csv", annotations)
    truth = write_truth_table(tmp_path / "truth.csv", annotations, np.arange(8) % 2)
    for path in (answers, truth):
        with path.open(newline="") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        assert all(cell[0] not in "=+@\t\r" and (cell[0] != "-" or cell in ("-1", "-2")) for cell in cells), cells
    again = load_table(answers, truth)
    assert (again.items, again.raters, set(again.classes)) == (
        annotations.items, annotations.raters, set(annotations.classes)
    )  # fmt: skip
    assert [again.classes[number] for number in again.truth] == ["@cat", "-2"] * 4


def test_a_name_with_and_without_our_apostrophe_is_one_name(tmp_path):
    (tmp_path / "a.csv").write_text("item,rater,label\n'=a,x,1\n=a,y,2\n")
    found = load_table(tmp_path / "a.csv")
    assert (found.items, len(found.answers)) == (("=a",), 2)


def test_a_first_line_without_end_is_not_read(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"x" * 2**23)
    with pytest.raises(InputError, match=r"a\.csv: the first line has more than"):
        load_table(tmp_path / "a.csv")


def test_a_quotation_mark_that_is_never_closed_does_not_swallow_the_end(tmp_path):
    (tmp_path / "a.csv").write_text('item,rater,label\na,x,1\nb,x,"2\n')
    with pytest.raises(InputError, match="never closed"):
        load_table(tmp_path / "a.csv")
