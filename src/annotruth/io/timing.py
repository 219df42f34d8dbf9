"""When the answers of a label table were given, and how long each took: columns that a table may have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet

from annotruth.data.annotations import Annotations
from annotruth.data.answers import SYNONYMS
from annotruth.errors import InputError, shorten
from annotruth.io.tables import SUFFIXES, csv_head, read_table

TIME_COLUMNS = ("submitted", "time", "timestamp", "submitted_at", "date", "started")
SECONDS_COLUMNS = ("seconds", "duration", "duration_seconds", "lead_time")


@dataclass(frozen=True)
class AnswerTimes:
    """Of each answer of a label table, in the order of ``Annotations.answers``.

    Attributes
    ----------
    time : (answers,) when it was given, in seconds since 1970; nan = not told
    seconds : (answers,) how long it took; nan = not told
    """

    time: np.ndarray
    seconds: np.ndarray

    def __post_init__(self) -> None:
        if self.time.shape != self.seconds.shape or self.time.ndim != 1:
            raise InputError(
                f"Times and durations are one number per answer, not {self.time.shape} and {self.seconds.shape}."
            )


def read_times(path: str | Path, annotations: Annotations) -> AnswerTimes | None:
    """Read when answers were given and how long they took; None if the table tells neither.

    Times stand in the first column there is of submitted, time, timestamp, submitted_at, date and started (dates as
    ISO 8601 has them, or seconds since 1970), durations in seconds, duration, duration_seconds or lead_time. Where a
    rater answered an item twice, the last row counts.

    Parameters
    ----------
    path : the label table, CSV or Parquet
    annotations : as they were loaded from it

    Examples
    --------
    >>> import tempfile
    >>> from annotruth.io.tables import load_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "labels.csv"
    ...     _ = path.write_text("item,rater,label,time,seconds\\na,ann,cat,2026-01-05 09:00:00Z,4\\nb,ann,dog,,\\n")
    ...     times = read_times(path, load_table(path))
    >>> times.time, times.seconds
    (array([1.7676036e+09,           nan]), array([ 4., nan]))
    """
    path = Path(path)
    if annotations.kind != "labels" or not path.is_file() or path.suffix.lower() not in SUFFIXES:
        return None
    names = csv_head(path)[0] if path.suffix.lower() == ".csv" else pyarrow.parquet.read_schema(path).names
    when, taken = (_first(columns, names) for columns in (TIME_COLUMNS, SECONDS_COLUMNS))
    if when is None and taken is None:
        return None
    columns = {"item": SYNONYMS["item"], "rater": SYNONYMS["rater"]}
    columns |= {ours: (name,) for ours, name in (("time", when), ("seconds", taken)) if name is not None}
    table = read_table(path, columns)
    place = _places(table["item"].names, table["item"].codes, annotations.items) * len(annotations.raters) + _places(
        table["rater"].names, table["rater"].codes, annotations.raters
    )
    answers = annotations.answers
    wanted = answers.item.astype(np.int64) * len(annotations.raters) + answers.rater
    row = _last_rows(place, wanted)

    def column(ours: str, numbers: np.ndarray) -> np.ndarray:
        return np.where(row >= 0, numbers[table[ours].codes[row]], np.nan)

    nothing = np.full(len(wanted), np.nan)
    return AnswerTimes(
        nothing if when is None else column("time", parse_times(table["time"].names, path, when)),
        nothing if taken is None else column("seconds", parse_seconds(table["seconds"].names, path, taken)),
    )


def parse_times(texts: Sequence[str], path: Path, column: str) -> np.ndarray:
    """Seconds since 1970 (texts + 1,) of dates, or of such seconds themselves; the last, for an empty cell, is nan.

    Examples
    --------
    >>> parse_times(["1970-01-01T00:01:00Z", "1970-01-02"], Path("labels.csv"), "time").tolist()
    [60.0, 86400.0, nan]
    """
    import pandas as pd

    try:
        return np.array([*map(float, texts), np.nan])
    except ValueError:
        pass
    dates = pd.to_datetime(pd.Series(list(texts), dtype=object), utc=True, errors="coerce", format="ISO8601")
    wrong = [text for text, lost in zip(texts, dates.isna()) if lost]
    if wrong:
        raise InputError(
            f"{path}: the column {column!r} holds what is no time: {shorten(wrong, 3)}. Write times as "
            "2026-01-31 14:05:00, or as seconds since 1970."
        )
    since = (dates - pd.Timestamp(0, tz="UTC")).dt.total_seconds()
    return np.append(since.to_numpy(dtype=np.float64), np.nan)


def parse_seconds(texts: Sequence[str], path: Path, column: str) -> np.ndarray:
    """Durations (texts + 1,) above 0, nan for others; the last, for an empty cell, is nan.

    Examples
    --------
    >>> parse_seconds(["4", "-1"], Path("labels.csv"), "seconds").tolist()
    [4.0, nan, nan]
    """
    try:
        found = np.array([*map(float, texts), np.nan])
    except ValueError:
        raise InputError(
            f"{path}: the column {column!r} holds more than numbers: how long did each label take?"
        ) from None
    return np.where(np.isfinite(found) & (found > 0), found, np.nan)


def _first(columns: Sequence[str], names: Sequence[str]) -> str | None:
    return next((column for column in columns if column in names), None)


def _places(names: Sequence[str], codes: np.ndarray, known: Sequence[str]) -> np.ndarray:
    """Position (rows,) of each row's name among those known; far below 0 for others."""
    position = {name: number for number, name in enumerate(known)}
    found = np.array([*(position.get(name, -(2**40)) for name in names), -(2**40)], dtype=np.int64)
    return np.asarray(found[codes])


def _last_rows(place: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The last row that has each of the places wanted; -1 = none."""
    order = np.argsort(place, kind="stable")
    end = np.searchsorted(place[order], wanted, side="right") - 1
    row = order[np.maximum(end, 0)]
    return np.where((end >= 0) & (place[row] == wanted), row, -1)
