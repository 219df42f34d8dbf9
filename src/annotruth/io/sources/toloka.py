"""Toloka: the assignments of a pool as tab-separated text, a row per answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from annotruth.errors import InputError, shorten
from annotruth.io.contents import Contents
from annotruth.io.crowd import STARTED, SUBMITTED, leave_out, need_column, read_frame, read_head, take_answers
from annotruth.io.problems import Report
from annotruth.io.sources import register
from annotruth.io.sources.imports import ImportSource

INPUT, OUTPUT, GOLDEN, ASSIGNMENT = "INPUT:", "OUTPUT:", "GOLDEN:", "ASSIGNMENT:"
WORKER, STATUS, TASK = f"{ASSIGNMENT}worker_id", f"{ASSIGNMENT}status", f"{ASSIGNMENT}task_id"
_TIMES = {f"{ASSIGNMENT}started": STARTED, f"{ASSIGNMENT}submitted": SUBMITTED}
_REFUSED = ("rejected", "skipped", "expired", "active")


@register
class Toloka(ImportSource):
    """INPUT:<name>, OUTPUT:<name>, GOLDEN:<name>, ASSIGNMENT:worker_id, ASSIGNMENT:status."""

    name = "Toloka assignments file"
    key = "toloka"
    description = "a TSV file of Toloka's assignments (INPUT:*, OUTPUT:*, ASSIGNMENT:worker_id)"
    kind = "labels"
    identity = "ASSIGNMENT:worker_id"
    inputs = ("duplicates",)
    suffixes = (".tsv",)
    options = {  # noqa: RUF012
        "item": "the column that names the item, where several INPUT:* columns may",
        "label": "the column with the answer, where there are several OUTPUT:* columns",
    }

    def matches(self, path: Path) -> bool:
        head = read_head(path)
        return WORKER in head and any(name.startswith(OUTPUT) for name in head)

    def read(self, path: Path, report: Report, item: str | None = None, label: str | None = None, **_: Any) -> Contents:
        frame = read_frame(path)
        need_column(frame, WORKER, path)
        shown = _choose(path, frame, INPUT, item, "item", TASK)
        given = _choose(path, frame, OUTPUT, label, "label", None)
        name = given.removeprefix(OUTPUT)
        # Tasks with a known answer are there to test workers; they may stand with or without a worker.
        golden = frame.get(f"{GOLDEN}{name}", pd.Series(index=frame.index, dtype=object))
        known = frame[golden.notna()]
        truth = dict(zip(known[shown], golden[golden.notna()].str.strip()))
        if STATUS in frame:
            refused = frame[STATUS].fillna("").str.lower().isin(_REFUSED)
            frame = leave_out(frame, refused, "their assignments were not accepted", path, report)
        frame = frame[frame[WORKER].notna() | frame[given].notna()]
        rows = pd.DataFrame({"item": frame[shown], "rater": frame[WORKER], "label": frame[given]})
        times = frame[[column for column in _TIMES if column in frame]].rename(columns=_TIMES)
        notes = [f"The item is {shown}, the label {given}."]
        if truth:
            notes.append(f"The answer is known of {len(truth)} items ({GOLDEN}{name}).")
        return take_answers(path, pd.concat([rows, times], axis=1), report, notes, truth)


def _choose(path: Path, frame: pd.DataFrame, prefix: str, asked: str | None, what: str, instead: str | None) -> str:
    """The one column with a prefix, or the one asked for, with or without its prefix."""
    if asked is not None:
        return need_column(frame, asked if asked in frame else f"{prefix}{asked}", path)
    found = [name for name in frame.columns if name.startswith(prefix) and frame[name].notna().any()]
    if len(found) == 1:
        return found[0]
    if instead is not None and instead in frame:
        return instead
    if not found:
        raise InputError(f"{path}: no column {prefix}* holds anything. Download the assignments anew.")
    raise InputError(
        f"{path}: several columns may be the {what}, {shorten(found, 20)}. Say which: --{what} {found[0]}."
    )
