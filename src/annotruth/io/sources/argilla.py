"""Argilla: records that were written with ``dataset.to_disk`` or ``records.to_json``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from annotruth.errors import InputError, shorten
from annotruth.io.contents import Contents
from annotruth.io.crowd import peek_json, read_json_lines, short_text, take_answers
from annotruth.io.drawn import parsing
from annotruth.io.problems import Problem, Report
from annotruth.io.sources import register
from annotruth.io.sources.imports import ImportSource

RECORDS = "records.json"
_COUNTED = ("submitted", None)


@register
class Argilla(ImportSource):
    """[{"id", "fields", "responses": {question: [{"value", "user_id"}]}}]."""

    name = "Argilla records file"
    key = "argilla"
    description = "Argilla's records as JSON (responses with value and user_id), or the folder to_disk made"
    kind = "labels"
    identity = "user_id"
    inputs = ("duplicates",)
    suffixes = (".json", ".jsonl")
    options = {"label": "the question, where there are several"}  # noqa: RUF012

    def matches(self, path: Path) -> bool:
        file = path / RECORDS if path.is_dir() else path
        if file.suffix.lower() not in (".json", ".jsonl") or not file.is_file():
            return False
        first = peek_json(file)
        return first is not None and isinstance(first.get("fields"), dict) and "responses" in first

    def read(self, path: Path, report: Report, label: str | None = None, **_: Any) -> Contents:
        file = path / RECORDS if path.is_dir() else path
        rows: list[dict[str, Any]] = []
        drafts = several = 0
        for number, record in read_json_lines(file, report):
            with parsing(report, file):
                for question, answer in _responses(record):
                    if answer.get("status") not in _COUNTED:
                        drafts += 1
                        continue
                    value = _only(answer.get("value"))
                    if value is None:
                        several += 1
                        continue
                    who = answer.get("user_id")
                    if who is not None and not isinstance(who, (str, int)):
                        raise InputError(f"a response is by {who!r}, which is nobody's name. Export anew.")
                    rows.append({"item": _item(record, number), "rater": who, "label": value, "question": question})
        for count, why in (
            (drafts, "they were saved as a draft, or discarded"),
            (several, "they are spans or rankings, or several labels at once"),
        ):
            if count:
                report(Problem("warning", file, None, None, f"{count} answers are left out: {why}."))
        if not rows:
            raise InputError(f"{file}: nobody has answered with one label. Export the records with their responses.")
        frame = pd.DataFrame(rows)
        questions = list(frame["question"].unique())
        if label is None and len(questions) > 1:
            raise InputError(
                f"{file}: there are several questions, {shorten(questions, 20)}. Say which: --label {questions[0]}."
            )
        if label is not None and label not in questions:
            raise InputError(f"{file}: there is no answer to {label!r}, only to {shorten(questions, 20)}. Correct it.")
        asked = frame[frame["question"] == (label or questions[0])].drop(columns="question")
        return take_answers(file, asked, report, [f"The label is the answer to “{label or questions[0]}”."])


def _responses(record: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Question and answer of every response, in the form of Argilla 2 (by question) or of 1 (by user)."""
    given = record.get("responses") or {}
    if isinstance(given, dict):
        pairs = [(question, answer) for question, answers in given.items() for answer in answers or []]
    else:
        pairs = [
            (question, {**(value if isinstance(value, dict) else {"value": value}), "user_id": each.get("user_id"),
                        "status": each.get("status")})
            for each in given for question, value in (each.get("values") or {}).items()
        ]  # fmt: skip
    for question, answer in pairs:
        if not isinstance(answer, dict):
            raise InputError(f"a response to {question} is {answer!r}, which says not who gave it. Export anew.")
        yield str(question), answer


def _only(value: Any) -> str | int | float | None:
    """An answer that is one label; None for spans, rankings and several labels."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, (str, int, float)) else None


def _item(record: dict[str, Any], number: int) -> str:
    for key in ("external_id", "id"):
        if isinstance(record.get(key), (str, int)):
            return str(record[key])
    texts = [value for value in record["fields"].values() if isinstance(value, str)]
    return short_text(texts[0]) if texts else f"record_{number}"
