"""Prodigy: what ``prodigy db-out`` writes, a JSON object per line and answer."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd

from annotruth.errors import InputError
from annotruth.io.contents import Contents
from annotruth.io.crowd import SUBMITTED, peek_json, read_json_lines, short_text, take_answers
from annotruth.io.drawn import parsing
from annotruth.io.problems import Problem, Report
from annotruth.io.sources import register
from annotruth.io.sources.imports import ImportSource

MAX_SECONDS = 1e10
"""From 1970 on; later times are none."""


@register
class Prodigy(ImportSource):
    """{"text" or "image", "label" or "accept", "answer", "_annotator_id" or "_session_id", "_timestamp"}."""

    name = "Prodigy file"
    key = "prodigy"
    description = "a JSONL file of Prodigy's answers (answer, label or accept, _annotator_id)"
    kind = "labels"
    identity = "_annotator_id, or _session_id"
    inputs = ("duplicates",)
    suffixes = (".jsonl",)

    def matches(self, path: Path) -> bool:
        first = peek_json(path) if path.suffix.lower() in (".jsonl", ".json", ".ndjson") and path.is_file() else None
        return first is not None and first.get("answer") in ("accept", "reject", "ignore") and "_task_hash" in first

    def read(self, path: Path, report: Report, **_: Any) -> Contents:
        tasks = [task for _, task in read_json_lines(path, report)]
        names: set[str] = set()
        for task in (task for task in tasks if "label" in task and "accept" not in task):
            with parsing(report, path):
                names.add(_name(task["label"]))
        rows: list[dict[str, Any]] = []
        ignored = rejected = several = 0
        for task in tasks:
            answer = task.get("answer")
            if answer == "ignore":
                ignored += 1
                continue
            with parsing(report, path):
                label = _chosen(task)
                if "accept" not in task and answer == "reject":
                    label = f"not {next(iter(names))}" if len(names) == 1 else None
                    rejected += label is None
                elif label is None:
                    several += 1
                if label is not None:
                    rows.append({"item": _item(task), "rater": _rater(task), "label": label, SUBMITTED: _time(task)})
        for count, why in (
            (ignored, "the rater skipped them"),
            (rejected, "they only say what the label is not, of more than two"),
            (several, "they name no label, or several at once"),
        ):
            if count:
                report(Problem("warning", path, None, None, f"{count} answers are left out: {why}."))
        if not rows:
            raise InputError(f"{path}: no answer chooses one label; spans and boxes are not read from Prodigy.")
        notes = []
        if len(names) == 1 and any(row["label"].startswith("not ") for row in rows):
            notes.append(f"A rejected {next(iter(names))} is taken as the label “not {next(iter(names))}”.")
        return take_answers(path, pd.DataFrame(rows), report, notes)


def _name(label: Any) -> str:
    if isinstance(label, (dict, list)):
        raise InputError(f"a label is {label!r}, not a word. Export the answers anew.")
    return str(label)


def _chosen(task: dict[str, Any]) -> str | None:
    """The one label that was accepted; of several options their text, where it is short enough to be a name."""
    if "accept" not in task:
        return _name(task["label"]) if "label" in task else None
    accepted = task["accept"]
    if task.get("answer") != "accept" or not isinstance(accepted, list) or len(accepted) != 1:
        return None
    return _name(accepted[0])


def _item(task: dict[str, Any]) -> str | None:
    meta = task.get("meta")
    if isinstance(meta, dict) and isinstance(meta.get("id"), (str, int)):
        return str(meta["id"])
    image = task.get("path") or task.get("image")
    if isinstance(image, str) and not image.startswith("data:"):
        return PurePosixPath(image.replace("\\", "/")).name
    if isinstance(task.get("text"), str):
        return short_text(task["text"])
    return str(task["_input_hash"]) if "_input_hash" in task else None


def _rater(task: dict[str, Any]) -> str | None:
    who = task.get("_annotator_id") or task.get("_session_id")
    return None if who is None else str(who)


def _time(task: dict[str, Any]) -> str | None:
    when = task.get("_timestamp")
    if not isinstance(when, (int, float)) or not 0 <= when < MAX_SECONDS:
        return None
    return pd.Timestamp(when, unit="s", tz="UTC").isoformat()
