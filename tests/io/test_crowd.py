"""Tables of any line end and delimiter, and lines of JSON."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from annotruth.errors import InputError
from annotruth.io.crowd import peek_json, read_frame, read_head, read_json_lines, short_text, take_answers


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["", "BOM"])
def test_line_ends_and_delimiters(tmp_path: Path, end: str, delimiter: str, mark: str) -> None:
    lines = [["a", "b c"], ["1", '"x' + delimiter + 'y"'], ["", "é"]]
    path = tmp_path / "t.txt"
    path.write_bytes((mark + "".join(delimiter.join(line) + end for line in lines)).encode())
    assert read_head(path) == ["a", "b c"]
    frame = read_frame(path)
    assert frame["b c"].tolist() == [f"x{delimiter}y", "é"]
    assert frame["a"].isna().tolist() == [False, True]


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "cannot be read as a table"), (b"a,b\n", "no row"), (b"\xff\xfe\x00", "Save it as UTF-8"),
     (b"a,b\n1,2,3,4\n1\n1,2,3\n", "cannot be read|t.csv")],
)  # fmt: skip
def test_what_is_no_table_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_frame(tmp_path / "t.csv")


def test_a_head_of_what_is_no_table_is_empty(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"nonsense")
    assert read_head(tmp_path / "a.parquet") == read_head(tmp_path / "b.csv") == read_head(tmp_path) == []


def test_rows_that_lack_something_are_left_out_and_counted() -> None:
    told: list[str] = []
    rows = pd.DataFrame({"item": ["a", "b", None], "rater": ["x", "y", "z"], "label": ["1", " ", "2"], "note": None})
    contents = take_answers(Path("t.csv"), rows, lambda problem: told.append(problem.message))
    assert contents.answers is not None
    assert contents.answers.to_dict("records") == [{"item": "a", "rater": "x", "label": "1"}]
    assert told == [
        "1 answers have no item and are left out (row 3).",
        "1 answers have no label and are left out (row 2).",
    ]


def test_truth_that_nobody_answered_is_a_class_all_the_same() -> None:
    rows = pd.DataFrame({"item": ["a"], "rater": ["x"], "label": ["cat"]})
    contents = take_answers(Path("t.csv"), rows, print, truth={"a": "dog", "elsewhere": "cow"})
    assert contents.classes == ("cat", "cow", "dog")
    assert contents.true_labels == {"a": "dog"}


def test_lines_and_lists_of_json(tmp_path: Path) -> None:
    told: list[str] = []
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\r\n\r\nnonsense\r\n{"a": 2}')
    found = list(read_json_lines(path, lambda problem: told.append(problem.message)))
    assert found == [(1, {"a": 1}), (4, {"a": 2})]
    assert told == ["line 3 is not a JSON object."]
    path.write_text('[{"a": 1}, 3]')
    assert [each for _, each in read_json_lines(path, lambda problem: None)] == [{"a": 1}]
    assert peek_json(path) == {"a": 1}
    path.write_text("[" * 100_000)
    assert peek_json(path) is None
    with pytest.raises(InputError, match="this is not JSON"):
        list(read_json_lines(path, print))


def test_long_texts_are_told_apart() -> None:
    first, second = short_text("word " * 50 + "a"), short_text("word " * 50 + "b")
    assert first != second
    assert len(first) < 100
