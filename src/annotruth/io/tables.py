"""Label tables: CSV or Parquet with a row per answer, read whole without keeping its text in memory, and written."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from annotruth.data.annotations import Annotations
from annotruth.data.answers import SYNONYMS, class_name, merge_answers, name_classes
from annotruth.errors import InputError, shorten
from annotruth.io.answer_kinds import advise_method
from annotruth.io.names import from_cell, to_cell
from annotruth.io.reading import refuse_irregular
from annotruth.io.writing import atomic
from annotruth.validation import MISSING_LABEL

SUFFIXES = (".csv", ".parquet")
_MAX_HEAD = 2**22
EMPTY_CELLS = ["", "NA", "N/A", "NaN", "nan", "null", "NULL"]
_TRUTH_COLUMNS = {"item": SYNONYMS["item"], "truth": ("truth", "label")}


@dataclass(frozen=True)
class Column:
    """A table's column: every distinct value once.

    Attributes
    ----------
    codes : (rows,) int32, position in ``names``, -1 = the row holds nothing
    names : the distinct values as text, in order of first appearance
    """

    codes: np.ndarray
    names: list[str]

    @property
    def empty_rows(self) -> np.ndarray:
        return np.flatnonzero(self.codes < 0)

    def take(self, rows: np.ndarray) -> Column:
        return Column(self.codes[rows], self.names)


def load_table(path: Path, truth: Path | None = None, duplicates: str = "error") -> Annotations:
    """Load a label table (columns item, rater, label) and, where it is known, the truth (columns item, truth)."""
    table = read_table(path)
    for trouble in find_missing_values(table):
        raise InputError(f"{path}: {trouble}")
    return make_annotations(path, table, None if truth is None else read_truth(truth), duplicates)


def make_annotations(
    path: Path, table: Mapping[str, Column], truth: Mapping[str, str] | None = None, duplicates: str = "error"
) -> Annotations:
    """Make annotations of a table whose rows are all filled; what is wrong with them names the file."""
    item, rater, label = table["item"], table["rater"], table["label"]
    classes = name_classes([*label.names, *(truth or {}).values()])
    position = {name: number for number, name in enumerate(classes)}
    numbers = np.array([position[name] for name in label.names], dtype=np.int16)[label.codes]
    try:
        answers = merge_answers(item.codes, rater.codes, numbers, duplicates, item.names, rater.names, classes)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    true_numbers = None
    if truth is not None:
        true = [truth.get(name) for name in item.names]
        true_numbers = np.array([MISSING_LABEL if name is None else position[name] for name in true], dtype=np.int16)
    return Annotations(
        kind="labels", items=item.names, raters=rater.names, classes=classes, answers=answers, truth=true_numbers
    )  # fmt: skip


def find_missing_values(table: Mapping[str, Column]) -> list[str]:
    """Say, column by column, which rows hold nothing; the first row under a table's head is row 1."""
    troubles = []
    for name, column in table.items():
        rows = column.empty_rows + 1
        if len(rows):
            first = ", ".join(map(str, rows[:5])) + (" …" if len(rows) > 5 else "")
            which = f"row {first} has" if len(rows) == 1 else f"{len(rows)} rows ({first}) have"
            troubles.append(f"{which} no {name}. Fill it in, or remove the row if the rater did not answer.")
    return troubles


def read_truth(path: Path) -> dict[str, str]:
    """Read the true label by item from the columns item and truth of a CSV or Parquet file."""
    table = read_table(path, _TRUTH_COLUMNS)
    item, label = table["item"], table["truth"]
    truth: dict[str, str] = {}
    for item_code, label_code in zip(item.codes.tolist(), label.codes.tolist()):
        if item_code >= 0 and label_code >= 0:
            name, true = item.names[item_code], label.names[label_code]
            if truth.setdefault(name, true) != true:
                raise InputError(f"{path}: {name} has two truths, {truth[name]} and {true}. Remove the wrong one.")
    return truth


def read_table(path: Path, columns: Mapping[str, tuple[str, ...]] = SYNONYMS) -> dict[str, Column]:
    """Read columns of a CSV or Parquet file under the first of their possible names; CSV is taken as text.

    Of a folder of Parquet files, those of all files.
    """
    if path.is_dir() and columns is SYNONYMS:
        return _read_folder(path)
    is_csv = path.suffix.lower() == ".csv"
    try:
        refuse_irregular(path)
        table = (_read_csv if is_csv else _read_parquet)(path, columns)
    except InputError as error:
        raise InputError(str(error) if str(error).startswith(str(path)) else f"{path}: {error}") from None
    except MemoryError as error:
        raise InputError(f"{path}: needs more memory than there is. Is the file damaged, or simply large?") from error
    except (pa.ArrowException, UnicodeDecodeError, csv.Error) as error:
        if is_csv and columns is SYNONYMS:
            _refuse_row(path)
        advice = "Save it as UTF-8 CSV or as Parquet." if is_csv else "Was it cut off? Write it again."
        raise InputError(f"{path}: cannot be read as a table ({error}). {advice}") from error
    except OSError as error:
        if error.errno is None:  # Arrow's own, of what is in the file
            reason = str(error).rstrip(".")
            raise InputError(f"{path}: cannot be read ({reason}). Is the file damaged? Write it again.") from error
        raise InputError(f"{path}: cannot be opened: {error.strerror or error}.") from error
    if table.num_rows == 0:
        raise InputError(f"{path}: the table has a head but no row. Add one for each {' and '.join(columns)}.")
    filled = {}
    for name in columns:
        codes, values = column_codes(table[name])
        table = table.drop_columns(name)
        pa.default_memory_pool().release_unused()  # Arrow keeps freed memory: hundreds of MB, if it is let
        filled[name] = _named(codes, values.to_pylist(), is_csv)
        if any(text.endswith("\n") for text in filled[name].names) and is_csv:
            raise InputError(
                f"{path}: a quotation mark in the column {name!r} is never closed. Close it, or remove it."
            )
    return filled


def _refuse_row(path: Path) -> None:
    """Name the first row of a CSV file that is not like the others, if one is the reason why it cannot be read."""
    from annotruth.io.table_parts import BadPart, find_parts, read_part, refuse_part

    parts, rows = find_parts(path), list[int]()
    for part in parts:
        try:
            rows.append(sum(len(columns["item"].codes) for columns in read_part(part)))
        except BadPart as error:
            if error.args[0].row is not None:
                raise refuse_part(part, error.args[0], parts, rows) from None
            return


def _read_folder(path: Path) -> dict[str, Column]:
    from annotruth.io.table_parts import find_parts

    files = list(dict.fromkeys(part.path for part in find_parts(path)))  # those with rows, once all are sound
    tables = [read_table(file) for file in files]
    return {name: _join([table[name] for table in tables]) for name in SYNONYMS}


def _join(columns: Sequence[Column]) -> Column:
    """The rows of several columns, one after the other."""
    position: dict[str, int] = {}
    codes = []
    for column in columns:
        numbers = [position.setdefault(name, len(position)) for name in column.names]
        codes.append(np.array([*numbers, -1], dtype=np.int32)[column.codes])
    return Column(np.concatenate(codes), list(position))


def _named(codes: np.ndarray, values: Sequence[Any], is_csv: bool) -> Column:
    """A column of text; cells that hold nothing, as NaN or as empty text, count as such whatever the format."""
    position: dict[str, int] = {}
    numbers = np.full(len(values) + 1, -1, dtype=np.int32)  # the last is that of -1
    for code, value in enumerate(values):
        name = class_name(value)
        if name not in EMPTY_CELLS:
            name = from_cell(name) if is_csv else name
            numbers[code] = position.setdefault(name, len(position))
    unchanged = len(position) == len(values)
    return Column(codes if unchanged else numbers[codes], list(position))


def write_table(path: str | Path, annotations: Annotations) -> Path:
    """Write the answers as a table with the columns item, rater, label; ``load`` reads it back.

    Examples
    --------
    >>> import tempfile
    >>> annotations = Annotations.from_answers(np.array([[0, 1], [1, -1]]), classes=["cat", "dog"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(write_table(Path(folder) / "answers.csv", annotations).read_text())
    "item","rater","label"
    "item_0","rater_1","cat"
    "item_0","rater_2","dog"
    "item_1","rater_1","dog"
    <BLANKLINE>
    """
    answers = annotations.answers
    columns = {
        "item": _name_codes(answers.item, annotations.items),
        "rater": _name_codes(answers.rater, annotations.raters),
        "label": _name_codes(answers.label, annotations.classes),
    }
    return _write(Path(path), pa.table(columns))


def write_truth_table(
    path: str | Path, annotations: Annotations, labels: np.ndarray, probabilities: np.ndarray | None = None
) -> Path:
    """Write one label per item as a table with the columns item and truth; ``load(…, truth=path)`` reads it back.

    Parameters
    ----------
    labels : (items,) class numbers, -1 = unknown
    probabilities : (items, classes), written into one column per class

    Examples
    --------
    >>> import tempfile
    >>> annotations = Annotations.from_answers(np.array([[0, 1], [1, -1]]), classes=["cat", "dog"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(write_truth_table(Path(folder) / "truth.csv", annotations, np.array([0, 1])).read_text())
    "item","truth"
    "item_0","cat"
    "item_1","dog"
    <BLANKLINE>
    """
    items = pa.array(annotations.items, pa.string())
    return _write(Path(path), _label_columns(items, annotations.classes, "truth", np.asarray(labels), probabilities))


def truth_rows(
    items: pa.Array, classes: Sequence[str], labels: np.ndarray, probabilities: np.ndarray, with_head: bool
) -> bytes:
    """Some rows of what :func:`write_truth_table` writes as CSV; the head stands above the first ones.

    Examples
    --------
    >>> truth_rows(pa.array(["a"]), ["cat", "dog"], np.array([1]), np.array([[0.25, 0.75]]), with_head=False)
    b'"a","dog",0.25,0.75\\n'
    """
    rows = pa.BufferOutputStream()
    table = _without_formulas(_label_columns(items, classes, "truth", labels, probabilities))
    pyarrow.csv.write_csv(table, rows, pyarrow.csv.WriteOptions(include_header=with_head))
    return rows.getvalue().to_pybytes()


def write_label_table(path: str | Path, annotations: Annotations, probabilities: np.ndarray) -> Path:
    """Write a model's predictions (items, classes) as a table with the columns item, label and one per class.

    Examples
    --------
    >>> import tempfile
    >>> annotations = Annotations.from_answers(np.array([[0], [1]]), classes=["cat", "dog"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_label_table(Path(folder) / "a.csv", annotations, np.array([[0.9, 0.1], [0.2, 0.8]]))
    ...     print(path.read_text())
    "item","label","probability of cat","probability of dog"
    "item_0","cat",0.9,0.1
    "item_1","dog",0.2,0.8
    <BLANKLINE>
    """
    items, labels = pa.array(annotations.items, pa.string()), np.argmax(probabilities, axis=1)
    return _write(Path(path), _label_columns(items, annotations.classes, "label", labels, probabilities))


def column_codes(column: pa.ChunkedArray) -> tuple[np.ndarray, pa.Array]:
    """Number a column's distinct values; give the numbers (rows,) int32, -1 for nothing, and the values."""
    is_encoded = pa.types.is_dictionary(column.type)
    chunks = (column.unify_dictionaries() if is_encoded else column.dictionary_encode()).chunks  # one for all chunks
    codes = np.concatenate([chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False) for chunk in chunks])
    return codes.astype(np.int32, copy=False), chunks[0].dictionary


def csv_head(path: Path) -> tuple[list[str], str]:
    """Names of a CSV file's columns, and what stands between them."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        head = file.readline(_MAX_HEAD + 1)
    if len(head) > _MAX_HEAD:
        raise InputError(f"the first line has more than {_MAX_HEAD} characters: this is no table. Replace the file.")
    delimiter = find_delimiter(head)
    return next(csv.reader([head], delimiter=delimiter), []), delimiter


def find_delimiter(text: str) -> str:
    """What stands between the cells of a table's first line: a comma, a semicolon, a tab or a bar.

    Examples
    --------
    >>> find_delimiter('item;rater;"label, of three"')
    ';'
    """
    first = re.sub(r'"[^"]*"', "", text.partition("\n")[0])
    return max(",;\t|", key=first.count)


def _read_csv(path: Path, columns: Mapping[str, tuple[str, ...]]) -> pa.Table:
    names, delimiter = csv_head(path)
    found = find_columns(path, names, columns)
    category = pa.dictionary(pa.int32(), pa.string())
    table = pyarrow.csv.read_csv(
        path,
        parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter),
        convert_options=pyarrow.csv.ConvertOptions(
            include_columns=list(found), column_types=dict.fromkeys(found, category),
            null_values=EMPTY_CELLS, strings_can_be_null=True,
        ),
    )  # fmt: skip
    return table.rename_columns(list(found.values()))


def _read_parquet(path: Path, columns: Mapping[str, tuple[str, ...]]) -> pa.Table:
    schema = pyarrow.parquet.read_schema(path)
    found = find_columns(path, schema.names, columns)
    for name, kind in ((name, schema.field(name).type) for name in found):
        if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            raise InputError(f"{path}: the column {name!r} holds {kind}. Write one word or number per row.")
    texts = [name for name in found if pa.types.is_string(schema.field(name).type)]
    table = pyarrow.parquet.read_table(path, columns=list(found), read_dictionary=texts).select(list(found))
    return table.rename_columns(list(found.values()))


def find_columns(path: Path, names: Sequence[str], columns: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Give our name of each column by the file's name of it."""
    if not names:
        raise InputError(f"{path}: the file is empty. A table has the columns {', '.join(columns)}, and a row each.")
    found = {}
    for ours, synonyms in columns.items():
        present = [synonym for synonym in synonyms if synonym in names]
        if not present:
            other = f" (nor {', '.join(synonyms[1:])})" if synonyms[1:] else ""
            raise InputError(
                f"{path}: there is no column {ours!r}{other} among {shorten(list(names), 10)}. "
                f"The table needs the columns {', '.join(columns)}.{advise_method(names)}"
            )
        if names.count(present[0]) > 1:
            raise InputError(f"{path}: there are two columns {present[0]!r}. Rename or remove the one not meant.")
        found[present[0]] = ours
    return found


def _label_columns(
    items: pa.Array, classes: Sequence[str], column: str, labels: np.ndarray, probabilities: np.ndarray | None
) -> pa.Table:
    columns = {"item": items, column: _name_codes(labels, classes)}
    if probabilities is not None:
        for number, name in enumerate(classes):
            columns[f"probability of {name}"] = pa.array(np.asarray(probabilities, dtype=np.float32)[:, number])
    return pa.table(columns)


def _name_codes(codes: np.ndarray, names: Sequence[str]) -> pa.Array:
    numbers = pa.array(codes.astype(np.int32), mask=codes < 0)
    return pa.DictionaryArray.from_arrays(numbers, pa.array(names, pa.string()))


def _without_formulas(table: pa.Table) -> pa.Table:
    """The same table with every name as a cell that no spreadsheet takes for a formula."""
    for number, column in enumerate(table.columns):
        if pa.types.is_dictionary(column.type):
            cells = [
                pa.DictionaryArray.from_arrays(part.indices, _cells(part.dictionary)) for part in column.chunks
            ]  # fmt: skip
            table = table.set_column(number, table.column_names[number], pa.chunked_array(cells, column.type))
        elif pa.types.is_string(column.type):
            table = table.set_column(number, table.column_names[number], _cells(column.combine_chunks()))
    return table


def _cells(names: pa.Array) -> pa.Array:
    if not pc.any(pc.match_substring_regex(names, r"^'*[=+\-@\t\r]")).as_py():
        return names
    return pa.array([None if name is None else to_cell(name) for name in names.to_pylist()], pa.string())


def _write(path: Path, table: pa.Table) -> Path:
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: a label table is written as {' or '.join(SUFFIXES)}.")
    with atomic(path) as temporary:
        if path.suffix.lower() == ".csv":
            pyarrow.csv.write_csv(_without_formulas(table), temporary)
        else:
            pyarrow.parquet.write_table(table, temporary)
    return path
