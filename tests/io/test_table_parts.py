"""Tables read in parts are the tables that are read whole; what is wrong with them names file and row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import annotruth as at
from annotruth.errors import InputError
from annotruth.io import check, find_source, table_parts
from annotruth.io.table_parts import BadPart, count_rows, find_parts, is_parquet_folder, read_part, refuse_part
from annotruth.io.tables import read_table

COLUMNS = ("item", "rater", "label")


def joined(path: Path) -> list[tuple[str, ...]]:
    """All rows, part by part."""
    rows = []
    for part in find_parts(path):
        for columns in read_part(part):
            cells = [np.array(columns[name].names.to_pylist(), dtype=object)[columns[name].codes] for name in COLUMNS]
            rows += list(zip(*cells))
    return rows


def whole(path: Path) -> list[tuple[str, ...]]:
    """The same, read whole."""
    table = read_table(path)
    return list(zip(*(np.array(table[name].names, dtype=object)[table[name].codes] for name in COLUMNS)))


def refusal(path: Path) -> str:
    """What is said of a table that cannot be read."""
    rows: list[int] = []
    parts: list[table_parts.TablePart] = []
    try:
        parts = find_parts(path)
        for part in parts:
            rows.append(sum(len(columns["item"].codes) for columns in read_part(part)))
    except InputError as error:
        return str(error)
    except BadPart as error:
        return str(refuse_part(parts[len(rows)], error.args[0], parts, rows))
    return ""


def put(
    path: Path, *rows: tuple[object, ...], group: int = 2, columns: tuple[str, ...] = COLUMNS, **kinds: object
) -> Path:
    """Write a Parquet file of some rows."""
    path.parent.mkdir(exist_ok=True)
    table = pa.table({name: pa.array(values, kinds.get(name)) for name, values in zip(columns, zip(*rows))})
    pyarrow.parquet.write_table(table, path, row_group_size=group)
    return path


names = st.text("ab'=-, \"é", min_size=1, max_size=4).filter(lambda name: name.strip() == name)


@given(
    st.lists(st.tuples(names, names, names), min_size=1, max_size=12),
    st.integers(1, 60), st.integers(1, 5), st.sampled_from(["\n", "\r\n", "\r"]),
)  # fmt: skip
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_parts_make_the_whole(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rows: list[tuple[str, str, str]],
    size: int,
    group: int,
    end: str,
) -> None:
    monkeypatch.setattr(table_parts, "PART_BYTES", size)
    monkeypatch.setattr(table_parts, "PART_ROWS", 3)
    cells = [",".join('"' + name.replace('"', '""') + '"' for name in row) for row in [COLUMNS, *rows]]
    path = tmp_path / "a.csv"
    path.write_bytes(end.join(cells).encode("utf-8-sig"))
    assert joined(path) == whole(path)
    path = put(tmp_path / "a.parquet", *rows, group=group)
    assert joined(path) == rows
    assert count_rows(path) == len(rows)


@pytest.mark.parametrize("kind", [pa.int64(), pa.float32(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_names_are_those_of_the_whole_table_whatever_the_type(tmp_path: Path, kind: pa.DataType) -> None:
    values = [1, 3, 1] if not pa.types.is_large_string(kind) and not pa.types.is_dictionary(kind) else ["1", "b", "1"]
    path = put(tmp_path / "a.parquet", *[(value, "r", value) for value in values], item=kind, label=kind)
    assert joined(path) == whole(path)


def test_a_folder_of_parquet_files_is_one_table(tmp_path: Path) -> None:
    folder = tmp_path / "answers"
    put(folder / "b.parquet", ("b", "ann", "x"), ("a", "bob", "y"))
    put(folder / "a.parquet", ("a", "ann", "x"))
    put(folder / "c.parquet", ("a", "ann", "x"))
    pyarrow.parquet.write_table(pa.table({name: pa.array([], pa.string()) for name in COLUMNS}), folder / "c.parquet")
    (folder / "_SUCCESS").touch()
    assert is_parquet_folder(folder)
    assert find_source(folder).name == "label table"
    loaded = at.load(folder)
    assert (loaded.items, loaded.raters) == (("a", "b"), ("ann", "bob"))
    np.testing.assert_array_equal(loaded.answer_matrix(), [[0, 1], [0, -1]])
    assert joined(folder) == whole(folder)
    assert not [problem for problem in check(folder) if problem.severity == "fatal"]


def test_types_of_a_file_without_rows_are_nobodys(tmp_path: Path) -> None:
    put(tmp_path / "t" / "b.parquet", ("a", "ann", "x"))
    none = pa.table({name: pa.array([], pa.null()) for name in COLUMNS})  # as pandas writes an empty frame
    pyarrow.parquet.write_table(none, tmp_path / "t" / "a.parquet")
    assert joined(tmp_path / "t") == whole(tmp_path / "t") == [("a", "ann", "x")]


def test_tables_that_would_be_left_out_of_a_folder_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "answers"
    put(folder / "a.parquet", ("a", "ann", "x"))
    (folder / "truth.csv").write_text("item,truth\na,x\n")
    assert at.load(folder).items == ("a",)
    put(folder / "later" / "b.parquet", ("b", "ann", "x"))
    (folder / "c.csv").write_text("item,rater,label\nc,ann,x\n")
    assert "c.csv, later/ would be left out" in refusal(folder)


def test_folders_of_other_parquet_files_are_no_tables(tmp_path: Path) -> None:
    put(tmp_path / "other" / "a.parquet", ("a", "b", "c"), columns=("x", "y", "z"))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "a.parquet").write_bytes(b"PAR1")
    assert not is_parquet_folder(tmp_path / "other")
    assert not is_parquet_folder(tmp_path / "broken")
    assert not is_parquet_folder(tmp_path / "nothing")


def test_a_column_that_one_file_lacks(tmp_path: Path) -> None:
    put(tmp_path / "t" / "a.parquet", ("a", "ann", "x"))
    lacking = put(tmp_path / "t" / "b.parquet", ("a", "bob"), columns=("item", "rater"))
    assert refusal(tmp_path / "t").startswith(f"{lacking}: there is no column 'label'")


def test_a_column_whose_type_changes_between_files(tmp_path: Path) -> None:
    put(tmp_path / "t" / "a.parquet", ("a", "ann", "1"))
    other = put(tmp_path / "t" / "b.parquet", ("a", "bob", 1))
    said = refusal(tmp_path / "t")
    assert said.startswith(f"{other}: the column 'label' holds int64, but string in a.parquet")
    with pytest.raises(InputError, match="holds int64, but string"):
        at.load(tmp_path / "t")
    put(tmp_path / "t" / "b.parquet", ("a", "bob", "1"), label=pa.large_string())
    assert len(joined(tmp_path / "t")) == 2


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.95])
def test_a_file_that_is_cut_off(tmp_path: Path, kept: float) -> None:
    put(tmp_path / "t" / "a.parquet", ("a", "ann", "x"))
    cut = put(tmp_path / "t" / "b.parquet", *[(f"item {n}", "ann", "x") for n in range(50)])
    cut.write_bytes(cut.read_bytes()[: int(kept * cut.stat().st_size)])
    assert refusal(tmp_path / "t").startswith(f"{cut}: ")


def test_a_damaged_row_group_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_parts, "PART_ROWS", 10)
    path = put(tmp_path / "a.parquet", *[(f"item {n}", "ann", "x") for n in range(40)], group=10)
    place = pyarrow.parquet.read_metadata(path).row_group(2).column(0)
    content = bytearray(path.read_bytes())
    content[place.dictionary_page_offset : place.dictionary_page_offset + 40] = b"\xff" * 40
    path.write_bytes(content)
    assert refusal(path).startswith(f"{path}: row group 2 cannot be read")


@pytest.mark.parametrize("empty", [None, "", "NaN"])
def test_cells_that_hold_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty: str | None) -> None:
    monkeypatch.setattr(table_parts, "PART_ROWS", 2)
    monkeypatch.setattr(table_parts, "PART_BYTES", 20)
    rows = [("a", "ann", "x"), ("b", "ann", "x"), ("c", "ann", "x"), ("d", empty, "x")]
    path = put(tmp_path / "a.parquet", *rows)
    assert refusal(path).startswith(f"{path}: row 4 (row group 1) has no rater. Fill it in")
    path = tmp_path / "a.csv"
    path.write_text("\n".join(",".join(cell or "" for cell in row) for row in [COLUMNS, *rows]))
    assert refusal(path).startswith(f"{path}: row 4 has no rater. Fill it in")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("b,bob", "row 3 has 2 cells where the head has 3 (b,bob). Correct or remove it."),
        ('b,"bob,x', "row 3 has a quotation mark that is never closed."),
        ('b,bob,"x', "row 3 has a quotation mark that is never closed."),
    ],
)
def test_lines_that_are_no_rows(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["item,rater,label", "a,ann,x", "a,bob,x", line, "c,ann,x", ""]))
    assert refusal(path).startswith(f"{path}: {message}")


@pytest.mark.parametrize("rows", [1, 2000])
def test_text_that_is_not_utf_8(tmp_path: Path, rows: int) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"item,rater,label\n" + b"a,ann,x\n" * rows + b"b,b\xffb,x\n")
    assert refusal(path).startswith(f"{path}: ")
    assert "UTF-8" in refusal(path)


def test_a_line_without_end_and_a_table_without_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_parts, "PART_BYTES", 10)
    monkeypatch.setattr(table_parts, "_MAX_LINE", 100)
    path = tmp_path / "a.csv"
    path.write_text("item,rater,label\n" + "a" * 1000)
    assert refusal(path) == f"{path}: a line has more than 100 characters: this is no table. Replace the file."
    path.write_text("item,rater,label\n")
    assert refusal(path).startswith(f"{path}: the table has a head but no row.")
    path.write_text("")
    assert refusal(path).startswith(f"{path}: the file is empty.")
    assert refusal(tmp_path / "none.csv").startswith(f"{tmp_path / 'none.csv'}: cannot be opened")
