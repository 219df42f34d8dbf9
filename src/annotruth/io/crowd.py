"""What crowd tables have in common: text read as it stands, columns found by name, answers left out for a reason.

An answer is a row with item, rater, label and, where they are known, when it was begun and given and how long it took.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from annotruth.data.answers import class_name
from annotruth.errors import InputError, shorten
from annotruth.io.contents import Contents
from annotruth.io.problems import Problem, Report
from annotruth.io.tables import find_delimiter

TEXT_SUFFIXES = (".csv", ".tsv", ".txt")
COLUMNS = ("item", "rater", "label")
STARTED, SUBMITTED, SECONDS = "started", "submitted", "seconds"
"""Columns that are kept beside the answers where the source has them."""
EMPTY = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "{}")
HEAD_BYTES = 1 << 16
MAX_NAME = 80
"""Letters of a text that names an item."""


def read_head(path: Path) -> list[str]:
    """Names of a table's columns; none if there is no table. Nothing is raised.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.tsv").write_bytes(b"task\\tworker\\ranswer 1\\tann\\r")
    ...     read_head(Path(folder) / "a.tsv")
    ['task', 'worker']
    """
    try:
        if not path.is_file():
            return []
        if path.suffix.lower() == ".parquet":
            return list(pyarrow.parquet.read_schema(path).names)
        if path.suffix.lower() not in TEXT_SUFFIXES:
            return []
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES).decode("utf-8-sig", errors="replace")
        lines = _unify_line_ends(head)
        return next(csv.reader(io.StringIO(lines), delimiter=find_delimiter(lines)), [])
    except (OSError, pa.ArrowException, csv.Error):
        return []


def read_frame(path: Path) -> pd.DataFrame:
    """Read a table as text, whatever its line ends; cells that hold nothing are missing (NaN)."""
    if path.suffix.lower() == ".parquet":
        return _read_parquet(path)
    text = _unify_line_ends(_read_text(path))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # of cells that would be dropped
            frame = pd.read_csv(
            io.StringIO(text), sep=find_delimiter(text), dtype=str, keep_default_na=False, na_values=list(EMPTY),
            skip_blank_lines=True, index_col=False, on_bad_lines="error",
            )  # fmt: skip
    except (pd.errors.ParserError, pd.errors.EmptyDataError, pd.errors.ParserWarning, ValueError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path}: cannot be read as a table ({reason}). Export it anew.") from error
    if frame.empty:
        raise InputError(f"{path}: the table has a head but no row. Export it anew.")
    if any(not isinstance(name, str) for name in frame.columns) or frame.columns.duplicated().any():
        raise InputError(f"{path}: two columns have the same name. Rename or remove the one not meant.")
    return frame


def need_column(frame: pd.DataFrame, name: str, path: Path) -> str:
    """Give a column's name back, refusing one that is not there.

    Examples
    --------
    >>> need_column(pd.DataFrame({"song": ["a"]}), "singer", Path("t.csv"))
    Traceback (most recent call last):
    annotruth.errors.InputError: t.csv: there is no column 'singer' among song. Correct its name.
    """
    if name not in frame.columns:
        raise InputError(
            f"{path}: there is no column {name!r} among {shorten(list(frame.columns), 20)}. Correct its name."
        )
    return name


def take_answers(
    path: Path,
    rows: pd.DataFrame,
    report: Report,
    notes: Sequence[str] = (),
    truth: Mapping[str, str] | None = None,
    classes: Sequence[str] | None = None,
) -> Contents:
    """Give answers as :class:`Contents`; rows without an item, a rater or a label are left out with a warning.

    Parameters
    ----------
    rows : the columns item, rater and label as text, and whatever is to be kept
    truth : true label by item, where it is known
    """
    frame = rows.copy()
    for column in COLUMNS:
        frame[column] = frame[column].map(lambda value: value if pd.isna(value) else class_name(value).strip())
        lacking = frame[column].isna() | (frame[column] == "")
        if lacking.any():
            numbers = [str(number) for number in frame.index[lacking] + 1]
            message = f"{len(numbers)} answers have no {column} and are left out (row {shorten(numbers, 3)})."
            report(Problem("warning", path, None, None, message))
            frame = frame[~lacking]
    if frame.empty:
        raise InputError(f"{path}: there is no row with an item, a rater and a label. Export it anew.")
    extra = [name for name in frame.columns if name not in COLUMNS and frame[name].notna().any()]
    kept = frame[[*COLUMNS, *extra]].reset_index(drop=True)
    told = dict(truth or {})
    named = tuple(classes) if classes is not None else None
    if told and named is None:
        strangers = sorted(set(told.values()) - set(kept["label"]))
        if strangers:
            named = tuple(sorted({*kept["label"], *strangers}))
    items = set(kept["item"])
    return Contents(
        named, answers=kept, true_labels={item: true for item, true in told.items() if item in items}, notes=list(notes)
    )


def read_json_lines(path: Path, report: Report) -> Iterator[tuple[int, dict[str, Any]]]:
    """Objects of a file with one in each line, or a list of them, with their numbers; other lines are reported."""
    content = _read_text(path)
    if content.lstrip().startswith("["):
        try:
            lines: list[Any] = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}: this is not JSON ({error}). Export it anew.") from None
    else:
        lines = _unify_line_ends(content).split("\n")
    for number, line in enumerate(lines, 1):
        if isinstance(line, str) and not line.strip():
            continue
        try:
            found = json.loads(line) if isinstance(line, str) else line
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict):
            yield number, found
        else:
            report(Problem("fatal", path, None, None, f"line {number} is not a JSON object.", "Export the file anew."))


def peek_json(path: Path) -> dict[str, Any] | None:
    """The first object of a file of JSON lines, or of a list; None if there is none. Nothing is raised.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.jsonl").write_text('{"text": "good"}\\n{"text": "bad"}\\n')
    ...     peek_json(Path(folder) / "a.jsonl")
    {'text': 'good'}
    """
    if not path.is_file():  # a pipe, say, which would be waited for
        return None
    try:
        with path.open("rb") as file:
            head = file.read(1 << 20).decode("utf-8-sig", errors="replace").lstrip("[ \r\n\t")
        found, _ = json.JSONDecoder().raw_decode(head)
    except (OSError, ValueError, RecursionError):  # no JSON, or a number of thousands of digits
        return None
    return found if isinstance(found, dict) else None


def short_text(text: str) -> str:
    """Name an item by its text; a long one by its beginning and a number made of all of it.

    Examples
    --------
    >>> short_text("Good film.")
    'Good film.'
    """
    flat = " ".join(text.split())
    return flat if len(flat) <= MAX_NAME else f"{flat[:MAX_NAME]}… {hashlib.sha256(text.encode()).hexdigest()[:8]}"


def leave_out(frame: pd.DataFrame, wrong: pd.Series, why: str, path: Path, report: Report) -> pd.DataFrame:
    """Leave rows out as it should be, saying how many and why."""
    if wrong.any():
        report(Problem("warning", path, None, None, f"{int(wrong.sum())} answers are left out: {why}."))
    return frame[~wrong]


def _read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: cannot be read as text ({error.reason}). Save it as UTF-8.") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be opened: {error.strerror or error}.") from error


def _unify_line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        table = pyarrow.parquet.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: cannot be read as Parquet ({error}). Export it anew.") from error
    if table.num_rows == 0:
        raise InputError(f"{path}: the table has no row. Export it anew.")
    return table.to_pandas()
