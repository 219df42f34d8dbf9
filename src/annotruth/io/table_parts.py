"""Label tables read in parts: lines of a CSV file, row groups of a Parquet file, or a folder of Parquet files.

A part is read by whoever likes, in any order: another thread, another machine. Nothing but the part is in memory.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from annotruth.data.answers import SYNONYMS, class_name
from annotruth.errors import InputError, shorten
from annotruth.io.names import from_cell
from annotruth.io.reading import refuse_irregular
from annotruth.io.tables import EMPTY_CELLS, column_codes, csv_head, find_columns

PART_ROWS, PART_BYTES = 2**21, 2**25
"""Rows of Parquet, and bytes of CSV, that are read at a time."""
_MAX_LINE = 2**22
_BYTES_PER_ROW = 16  # of CSV, about
_OPEN_QUOTATION = "has a quotation mark that is never closed. Close it, or remove it."
_LINE_END = re.compile(rb"\r\n|\r|\n")


@dataclass(frozen=True)
class TablePart:
    """Some rows of one of a table's files.

    Attributes
    ----------
    path : the file
    columns : our names of the columns, by the file's
    first, last : of CSV, the bytes first … last - 1; of Parquet, the rows, counted from 0
    row_groups : of Parquet, which, with how many rows each
    head, delimiter : of CSV, all columns of the file, and what stands between them
    """

    path: Path
    columns: dict[str, str]
    first: int
    last: int
    row_groups: tuple[tuple[int, int], ...] = ()
    head: tuple[str, ...] = ()
    delimiter: str = ","

    @property
    def is_csv(self) -> bool:
        return bool(self.head)

    def place(self, row: int, rows_before: int) -> str:
        """Say which row of the file is number ``row``, from 0, of this part; CSV needs the rows of earlier parts."""
        if self.is_csv:
            return f"row {rows_before + row + 1:,}"
        ends = list(accumulate(size for _, size in self.row_groups))
        group = next(number for (number, _), end in zip(self.row_groups, ends) if row < end)
        return f"row {self.first + row + 1:,} (row group {group})"

    def whole(self, rows_before: int) -> str:
        """Say which rows these are."""
        if self.is_csv:
            return f"the {PART_BYTES // 2**20} MB from row {rows_before + 1:,} on"
        groups = [number for number, _ in self.row_groups]
        return f"row group {groups[0]}" + (f" to {groups[-1]}" if len(groups) > 1 else "")


@dataclass(frozen=True)
class PartError:
    """Why a part cannot be read: in which of its rows, if in a certain one, and what is wrong there."""

    row: int | None
    message: str


class BadPart(Exception):
    """Raised with a :class:`PartError`; who knows the rows of all parts makes an InputError of it."""


@dataclass(frozen=True)
class PartColumn:
    """A column of some rows.

    Attributes
    ----------
    codes : (rows,) int32, position in ``names``
    names : distinct values as text; null for one that stands in no row
    """

    codes: np.ndarray
    names: pa.Array


def table_files(path: Path) -> list[Path]:
    """The files of a table: itself, or the Parquet files in a folder, in the order of their names."""
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.glob("*.parquet") if not file.name.startswith((".", "_")))


def _refuse_left_out(path: Path) -> None:
    """Refuse a folder of Parquet files with tables beside them, or in folders of their own, that would not be read."""
    if not path.is_dir():
        return
    beside = [
        each.name + "/" * each.is_dir()
        for each in sorted(path.iterdir())
        if not each.name.startswith((".", "_"))
        and (next(each.rglob("*.parquet"), None) is not None if each.is_dir() else _is_csv_of_answers(each))
    ]
    if beside:
        raise InputError(
            f"{path}: the Parquet files of a folder are one table, but {shorten(beside)} would be left out. Move all "
            "Parquet files into one folder, and other tables elsewhere."
        )


def _is_csv_of_answers(path: Path) -> bool:
    try:
        return path.suffix.lower() == ".csv" and _has_answers(csv_head(path)[0])
    except (OSError, UnicodeDecodeError, InputError):
        return False


def _has_answers(columns: Sequence[str]) -> bool:
    """Whether there are columns of items, raters and labels."""
    return all(any(name in columns for name in names) for names in SYNONYMS.values())


def is_parquet_folder(path: Path) -> bool:
    """Whether it is a folder of Parquet files of which one, at least, has the columns item, rater, label.

    Files of Hugging Face's library say what numbers mean in a head of their own, and are a source of their own.
    """
    for file in table_files(path) if path.is_dir() else []:
        try:
            schema = pyarrow.parquet.read_schema(file)
        except (pa.ArrowException, OSError):
            continue
        if not _has_answers(schema.names) or b"huggingface" in (schema.metadata or {}):
            return False
        kinds = [schema.field(name).type for names in SYNONYMS.values() for name in names if name in schema.names]
        return not any(map(pa.types.is_nested, kinds))
    return False


def count_rows(path: Path) -> int:
    """How many rows a table has: of Parquet as the files say, of CSV guessed by the size; 0 for what cannot be read.

    Examples
    --------
    >>> count_rows(Path("no such file.csv"))
    0
    """
    total = 0
    for file in table_files(path):
        try:
            refuse_irregular(file)
            is_csv = file.suffix.lower() == ".csv"
            total += file.stat().st_size // _BYTES_PER_ROW if is_csv else pyarrow.parquet.read_metadata(file).num_rows
        except (pa.ArrowException, OSError, InputError):
            continue  # whoever reads it says what is wrong
    return total


def find_parts(path: Path) -> list[TablePart]:
    """Cut a table into parts, in its order; every file's head is read, and what is wrong with one is an InputError.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder) / "answers.csv"
    ...     _ = table.write_text("item,rater,label\\na,ann,cat\\na,bob,dog\\n")
    ...     [(part.first, part.last) for part in find_parts(table)]
    [(17, 37)]
    """
    _refuse_left_out(path)
    parts: list[TablePart] = []
    kinds: dict[str, tuple[str, Any, Path]] = {}
    for file in table_files(path):
        try:
            refuse_irregular(file)
            parts += _csv_parts(file) if file.suffix.lower() == ".csv" else _parquet_parts(file, kinds)
        except InputError as error:
            raise InputError(str(error) if str(error).startswith(str(file)) else f"{file}: {error}") from None
        except (pa.ArrowException, UnicodeDecodeError) as error:
            doubt = "Save it as UTF-8." if isinstance(error, UnicodeDecodeError) else "Was it cut off? Write it again."
            raise InputError(f"{file}: cannot be read as a table ({error}). {doubt}") from error
        except OSError as error:
            raise InputError(f"{file}: cannot be opened: {error.strerror or error}.") from error
    if not parts:
        raise InputError(f"{path}: the table has a head but no row. Add one for each item and rater and label.")
    return parts


def read_part(part: TablePart) -> Iterator[dict[str, PartColumn]]:
    """Read a part, at most :data:`PART_ROWS` rows or :data:`PART_BYTES` at a time; raises :class:`BadPart`.

    Columns are item, rater and label; every row is filled.
    """
    before = 0
    try:
        for table in _csv_tables(part) if part.is_csv else _parquet_tables(part):
            columns = {name: _column(table[name], name, part.is_csv, before) for name in SYNONYMS}
            before += table.num_rows
            del table
            pa.default_memory_pool().release_unused()
            yield columns
    except MemoryError:
        raise BadPart(PartError(None, "needs more memory than there is")) from None
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        doubt = "Is the file in UTF-8?" if part.is_csv else "Is the file damaged, or cut off?"
        raise BadPart(PartError(None, f"cannot be read ({error}). {doubt}")) from error


# -- cutting ----------------------------------------------------------------------------------------------------


def _csv_parts(path: Path) -> list[TablePart]:
    head, delimiter = csv_head(path)
    columns = find_columns(path, head, SYNONYMS)
    size = path.stat().st_size
    edges = []
    with path.open("rb") as file:
        edge = _next_line(file, 0)
        while edge < size:
            edges.append(edge)
            edge = _next_line(file, edge + PART_BYTES) if edge + PART_BYTES < size else size
    return [
        TablePart(path, columns, first, last, head=tuple(head), delimiter=delimiter)
        for first, last in zip(edges, [*edges[1:], size])
    ]


def _next_line(file: Any, place: int) -> int:
    """Where the first line begins that begins after a place."""
    file.seek(place)
    block = file.read(_MAX_LINE)
    found = _LINE_END.search(block)
    if found is None and len(block) == _MAX_LINE:
        raise InputError(f"a line has more than {_MAX_LINE} characters: this is no table. Replace the file.")
    return place + (len(block) if found is None else found.end())


def _parquet_parts(path: Path, kinds: dict[str, tuple[str, Any, Path]]) -> Iterator[TablePart]:
    """Row groups, together as long as they are small; columns of another kind than in files before are refused."""
    metadata = pyarrow.parquet.read_metadata(path)
    schema = metadata.schema.to_arrow_schema()
    columns = find_columns(path, schema.names, SYNONYMS)
    for name, ours in columns.items():
        kind = schema.field(name).type
        if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            raise InputError(f"{path}: the column {name!r} holds {kind}. Write one word or number per row.")
        if not metadata.num_rows:  # nothing says what the types of no rows are worth
            continue
        usual, usual_type, earlier = kinds.setdefault(ours, (_sort_of(kind), kind, path))
        if _sort_of(kind) != usual:
            raise InputError(
                f"{path}: the column {name!r} holds {kind}, but {usual_type} in {earlier.name}: a name in one file may "
                "not be the same in the other. Write all files with the same types."
            )
    sizes = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    groups: list[tuple[int, int]] = []
    first = 0
    for number, size in enumerate(sizes):
        if groups and sum(rows for _, rows in groups) + size > PART_ROWS:
            yield _parquet_part(path, columns, first, groups)
            first, groups = first + sum(rows for _, rows in groups), []
        groups.append((number, size))
    if sum(rows for _, rows in groups):
        yield _parquet_part(path, columns, first, groups)


def _parquet_part(path: Path, columns: dict[str, str], first: int, groups: list[tuple[int, int]]) -> TablePart:
    return TablePart(path, columns, first, first + sum(rows for _, rows in groups), tuple(groups))


def _sort_of(kind: Any) -> str:
    """Text, numbers, or what else a type holds: types that are written differently may hold the same names."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    return "numbers" if pa.types.is_integer(kind) or pa.types.is_floating(kind) else str(kind)


# -- reading ----------------------------------------------------------------------------------------------------


def _csv_tables(part: TablePart) -> Iterator[pa.Table]:
    with part.path.open("rb") as file:
        file.seek(part.first)
        content = file.read(part.last - part.first)
    bad: list[Any] = []

    def note(row: Any) -> str:
        bad.append(row)
        return "skip" if len(bad) < 2 else "error"

    category = pa.dictionary(pa.int32(), pa.string())
    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(content),
            read_options=pyarrow.csv.ReadOptions(use_threads=False, column_names=list(part.head)),
            parse_options=pyarrow.csv.ParseOptions(delimiter=part.delimiter, invalid_row_handler=note),
            convert_options=pyarrow.csv.ConvertOptions(
                include_columns=list(part.columns), column_types=dict.fromkeys(part.columns, category),
                null_values=EMPTY_CELLS, strings_can_be_null=True,
            ),
        )  # fmt: skip
    except pa.ArrowInvalid:
        if not bad:
            raise
    for row in bad:
        if "\n" in row.text:
            raise BadPart(PartError(row.number - 1, _OPEN_QUOTATION))
        cells = f"{row.actual_columns} cells where the head has {row.expected_columns}"
        raise BadPart(PartError(row.number - 1, f"has {cells} ({row.text[:60]}). Correct or remove it."))
    yield table.rename_columns(list(part.columns.values()))


def _parquet_tables(part: TablePart) -> Iterator[pa.Table]:
    schema = pyarrow.parquet.read_schema(part.path)
    texts = [
        name for name, ours in part.columns.items() if ours != "item" and pa.types.is_string(schema.field(name).type)
    ]  # of items there are so many that looking for equal ones while reading takes longer
    names, groups = list(part.columns), [number for number, _ in part.row_groups]
    with pyarrow.parquet.ParquetFile(part.path, read_dictionary=texts) as file:
        if part.last - part.first <= PART_ROWS:
            tables: Iterator[pa.Table] = iter([file.read_row_groups(groups, columns=names, use_threads=False)])
        else:
            batches = file.iter_batches(PART_ROWS, row_groups=groups, columns=names, use_threads=False)
            tables = (pa.Table.from_batches([batch]) for batch in batches)
        for table in tables:
            yield table.select(names).rename_columns(list(part.columns.values()))


def _column(column: pa.ChunkedArray, name: str, is_csv: bool, before: int) -> PartColumn:
    codes, values = column_codes(column)
    names = _as_text(values, is_csv)
    if is_csv and pc.any(pc.ends_with(names, "\n")).as_py():
        lost = names.index(pc.filter(names, pc.ends_with(names, "\n"))[0]).as_py()
        row = int(np.flatnonzero(codes == lost)[0])
        raise BadPart(PartError(before + row, _OPEN_QUOTATION))
    if names.null_count:
        nothing = np.append(names.is_null().to_numpy(zero_copy_only=False), True)  # the last is that of -1
        codes = np.where(nothing[codes], -1, codes)
    empty = np.flatnonzero(codes < 0)
    if len(empty):
        message = f"has no {name}. Fill it in, or remove the row if the rater did not answer."
        raise BadPart(PartError(before + int(empty[0]), message))
    return PartColumn(codes, names)


def _as_text(values: pa.Array, is_csv: bool) -> pa.Array:
    """Distinct values as the names that they are in memory, null for cells that hold nothing."""
    if pa.types.is_string(values.type):
        names = values
    elif pa.types.is_large_string(values.type) or pa.types.is_integer(values.type):
        names = values.cast(pa.string())
    else:
        names = pa.array([None if value is None else class_name(value) for value in values.to_pylist()], pa.string())
    empty = pc.is_in(names, pa.array(EMPTY_CELLS))
    if pc.any(empty).as_py():
        names = pc.if_else(empty, None, names)
    if is_csv and pc.any(pc.starts_with(names, "'")).as_py():
        names = pa.array([None if name is None else from_cell(name) for name in names.to_pylist()], pa.string())
    return names


def find_contradiction(parts: Sequence[TablePart], item: str, rater: str) -> list[str]:
    """Say in which two rows a rater gave an item different labels; the table is read again as far as the second."""
    before: Counter[Path] = Counter()
    found: dict[str, str] = {}
    for part in parts:
        rows = 0
        for columns in read_part(part):
            chosen = [pc.equal(columns[name].names, who) for name, who in (("item", item), ("rater", rater))]
            is_item, is_rater = (mask.fill_null(False).to_numpy(zero_copy_only=False) for mask in chosen)
            for row in np.flatnonzero(is_item[columns["item"].codes] & is_rater[columns["rater"].codes]).tolist():
                label = columns["label"].names[int(columns["label"].codes[row])].as_py()
                found.setdefault(label, f"{part.path.name}, {part.place(rows + row, before[part.path])}")
                if len(found) == 2:
                    return list(found.values())
            rows += len(columns["item"].codes)
        before[part.path] += rows
    return list(found.values())


def refuse_part(part: TablePart, error: PartError, parts: Sequence[TablePart], rows: Sequence[int]) -> InputError:
    """The error of a part, given all parts before it and how many rows each had."""
    before = sum(count for other, count in zip(parts, rows) if other.path == part.path)
    where = part.whole(before) if error.row is None else part.place(error.row, before)
    return InputError(f"{part.path}: {where} {error.message}")
