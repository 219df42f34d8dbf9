"""Answer tables of other people's: a row per answer under other names, or a row per item and a column per rater."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from annotruth.data.answers import SYNONYMS
from annotruth.errors import InputError, shorten
from annotruth.io.answer_kinds import kind_of
from annotruth.io.contents import Contents
from annotruth.io.crowd import (
    COLUMNS,
    SECONDS,
    STARTED,
    SUBMITTED,
    TEXT_SUFFIXES,
    need_column,
    read_frame,
    read_head,
    take_answers,
)
from annotruth.io.problems import Report
from annotruth.io.sources import register
from annotruth.io.sources.imports import ImportSource

OTHER_NAMES = {
    "item": (
        "item_id", "itemid", "task_id", "taskid", "question", "question_id", "questionid", "unit", "unit_id",
        "_unit_id", "object", "object_id", "example", "example_id", "sample", "sample_id", "document", "doc_id",
        "document_id", "image_id", "imageid", "image_name", "filename", "file_name", "file", "picture", "url",
        "case_id", "id",
    ),
    "rater": (
        "rater_id", "raterid", "worker_id", "workerid", "_worker_id", "annotator_id", "annotatorid", "annotated_by",
        "user", "user_id", "userid", "username", "performer", "labeler", "labeller", "coder", "judge", "expert",
        "reader", "observer", "reviewer", "participant", "created_by", "completed_by",
    ),
    "label": (
        "response", "annotation", "class", "category", "value", "vote", "rating", "score", "judgment", "judgement",
        "choice", "diagnosis", "grade", "answer_label", "worker_label", "decision",
    ),
}  # fmt: skip
"""What columns are called elsewhere, most telling first; spelling with capitals counts the same."""
TIMES = {
    STARTED: ("started", "started_at", "_started_at", "start", "start_time", "accept_time", "accepttime"),
    SUBMITTED: (
        "submitted", "submitted_at", "_created_at", "submit_time", "submittime", "timestamp", "time", "date",
        "created_at", "answered_at", "end_time",
    ),
    SECONDS: ("seconds", "duration", "duration_seconds", "worktimeinseconds", "lead_time", "time_spent", "elapsed"),
}  # fmt: skip
TRUTH_NAMES = ("truth", "gold", "gold_label", "golden", "ground_truth", "true_label", "correct")
MAX_CLASSES_GUESSED = 50
"""Distinct values of all columns together up to which they may be raters' answers."""
SUFFIXES = (*TEXT_SUFFIXES, ".parquet")


@register
class AnswerTable(ImportSource):
    """A row per answer with columns of any name, or a row per item with a column per rater."""

    name = "answer table"
    key = "table"
    description = "a table with a row per answer, its columns named otherwise, or with a column per rater"
    kind = "labels"
    identity = "a column, or the columns' names"
    inputs = ("duplicates",)
    suffixes = SUFFIXES
    options = {  # noqa: RUF012
        "item": "the column that names the item",
        "rater": "the column that names the rater",
        "label": "the column with the answer",
        "raters": "in a table with a row per item: the raters' columns, with commas between them",
    }

    def matches(self, path: Path) -> bool:
        head = read_head(path)
        if not head or any(name.startswith(("Answer.", "OUTPUT:")) for name in head):
            return False
        if kind_of(head) is not None:  # answers that are no classes, which fuse takes under methods of their own
            return False
        ours = all(any(name in head for name in SYNONYMS[column]) for column in COLUMNS)
        if ours:  # a label table as it should be, unless only its file is of another kind
            return path.suffix.lower() not in (".csv", ".parquet")
        if all(guess_column(head, column) for column in COLUMNS):
            return True
        try:
            return bool(_guess_raters(read_frame(path), None))
        except InputError:
            return False

    def read(
        self,
        path: Path,
        report: Report,
        item: str | None = None,
        rater: str | None = None,
        label: str | None = None,
        raters: str | None = None,
        **_: Any,
    ) -> Contents:
        frame = read_frame(path)
        asked = {"item": item, "rater": rater, "label": label}
        for name in (name for name in asked.values() if name is not None):
            need_column(frame, name, path)
        found = {what: name or guess_column(list(frame.columns), what) for what, name in asked.items()}
        if raters is None and all(found.values()):
            return _long(path, frame, found, report)  # type: ignore[arg-type]
        if rater is not None or label is not None:
            lacking = [what for what, name in found.items() if name is None]
            raise InputError(
                f"{path}: which column is the {' and the '.join(lacking)}, of {shorten(list(frame.columns), 20)}? "
                f"Say so: {' '.join(f'--{what} COLUMN' for what in lacking)}."
            )
        return _wide(path, frame, item, raters, report)


def guess_column(names: list[str], what: str) -> str | None:
    """The column that has one of the usual names, or None.

    Examples
    --------
    >>> guess_column(["Question", "Worker_ID", "Response"], "rater")
    'Worker_ID'
    """
    plain = {name.strip().lower().replace(" ", "_").replace("-", "_"): name for name in reversed(names)}
    usual = (*SYNONYMS.get(what, ()), *OTHER_NAMES.get(what, ()), *TIMES.get(what, ()))
    return next((plain[name] for name in usual if name in plain), None)


def _long(path: Path, frame: pd.DataFrame, found: dict[str, str], report: Report) -> Contents:
    if len(set(found.values())) < len(found):
        raise InputError(f"{path}: one column cannot be two of item, rater and label. Name each.")
    times = {what: name for what in TIMES if (name := guess_column(list(frame.columns), what)) is not None}
    columns = {name: what for what, name in (found | times).items()}
    rows = frame[list(columns)].rename(columns=columns)
    told = [name for name in frame.columns if name.lower() in TRUTH_NAMES and name not in columns]
    truth: dict[str, str] = {}
    notes = [f"The item is {found['item']}, the rater {found['rater']}, the label {found['label']}."]
    if told:
        known = frame[frame[told[0]].notna()]
        for thing, true in zip(known[found["item"]].astype(str), known[told[0]].astype(str)):
            if truth.setdefault(thing, true) != true:
                raise InputError(f"{path}: {thing} has two truths, {truth[thing]} and {true}. Remove the wrong one.")
        notes.append(f"The truth is known of {len(truth)} items ({told[0]}).")
    return take_answers(path, rows, report, notes, truth)


def _wide(path: Path, frame: pd.DataFrame, item: str | None, raters: str | None, report: Report) -> Contents:
    if raters is not None:
        columns = [need_column(frame, name.strip(), path) for name in raters.split(",")]
    else:
        columns = _guess_raters(frame, item)
    if not columns:
        raise InputError(
            f"{path}: no columns for item, rater and label are found among {shorten(list(frame.columns), 20)}, nor a "
            "column for each of several raters. Name them: --item, --rater and --label, or --item and --raters."
        )
    named = item or _guess_item(frame, columns)
    items = frame[named] if named is not None else pd.Series([f"row_{n}" for n in range(1, len(frame) + 1)])
    told = [name for name in frame.columns if str(name).lower() in TRUTH_NAMES]
    truth = {}
    if told:
        known = frame[told[0]].notna()
        truth = dict(zip(items[known].astype(str), frame.loc[known, told[0]].astype(str)))
    if items.duplicated().any():
        twice = shorten(sorted(set(map(str, items[items.duplicated()]))))
        raise InputError(f"{path}: {twice} has two rows; with a column per rater, an item has one. Remove one.")
    parts = [pd.DataFrame({"item": items, "rater": str(name), "label": frame[name]}) for name in columns]
    rows = pd.concat(parts).dropna(subset=["label"])  # an empty cell: this rater did not label this item
    what = f"items are named by {named}" if named is not None else "items are numbered by row"
    notes = [f"Each of {len(columns)} columns is a rater ({shorten(columns, 10)}); {what}."]
    return take_answers(path, rows, report, notes, truth)


def _guess_raters(frame: pd.DataFrame, item: str | None) -> list[str]:
    """Columns that hold answers: beside the item's all others, if they share few values."""
    names = [str(name) for name in frame.columns]
    if item is None:
        item = _guess_item(frame, names)
    told = [name for name in names if name.lower() in TRUTH_NAMES]
    columns = [name for name in names if name != item and name not in told]
    if len(columns) < 2:
        return []
    try:
        values = [set(frame[name].dropna().astype(str)) for name in columns]
    except TypeError:
        return []
    everything = set().union(*values)
    shared = [value for value in everything if sum(value in each for each in values) > 1]
    few = 1 < len(everything) <= min(MAX_CLASSES_GUESSED, max(2, len(frame)))
    return columns if few and len(shared) >= min(2, len(everything)) and all(values) else []


def _guess_item(frame: pd.DataFrame, columns: list[str]) -> str | None:
    """A column under a usual name, or the first, if it tells every row from the others."""
    usual = guess_column([str(name) for name in frame.columns], "item")
    for name in (usual, str(frame.columns[0])):
        if name is not None and frame[name].notna().all() and frame[name].is_unique:
            return name
    return None
