"""Amazon Mechanical Turk: the batch results that a requester downloads, a row per assignment."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from annotruth.errors import InputError, shorten
from annotruth.io.contents import Contents
from annotruth.io.crowd import SECONDS, STARTED, SUBMITTED, leave_out, need_column, read_frame, read_head, take_answers
from annotruth.io.problems import Report
from annotruth.io.sources import register
from annotruth.io.sources.imports import ImportSource

INPUT, ANSWER, TASK_ANSWERS = "Input.", "Answer.", "Answer.taskAnswers"
_WORKER = ("WorkerId", "WorkerID", "workerid", "worker_id")
_TIMES = {"AcceptTime": STARTED, "SubmitTime": SUBMITTED, "WorkTimeInSeconds": SECONDS}
_YES, _NO = ("true", "on", "yes", "1"), ("false", "off", "no", "0")


@register
class MTurk(ImportSource):
    """WorkerId, HITId, AssignmentStatus, Input.<name>, Answer.<name>."""

    name = "Mechanical Turk results file"
    key = "mturk"
    description = "a CSV file of Mechanical Turk's results (WorkerId, Input.*, Answer.*)"
    kind = "labels"
    identity = "WorkerId"
    inputs = ("duplicates",)
    suffixes = (".csv",)
    options = {  # noqa: RUF012
        "item": "the column that names the item, where several Input.* columns may",
        "label": "the column with the answer, where there are several Answer.* columns",
    }

    def matches(self, path: Path) -> bool:
        head = read_head(path)
        return any(name in head for name in _WORKER) and any(name.startswith(ANSWER) for name in head)

    def read(self, path: Path, report: Report, item: str | None = None, label: str | None = None, **_: Any) -> Contents:
        frame = read_frame(path)
        worker = next((name for name in _WORKER if name in frame), None)
        if worker is None:
            raise InputError(f"{path}: there is no column WorkerId. Download the results with it.")
        if "AssignmentStatus" in frame:
            rejected = frame["AssignmentStatus"].fillna("").str.lower() == "rejected"
            frame = leave_out(frame, rejected, "their assignments were rejected", path, report)
        times = frame[[name for name in _TIMES if name in frame]].rename(columns=_TIMES)
        notes: list[str] = []
        parts = []
        for item_column, labels in _questions(path, frame, item, label, notes):
            rows = {"item": frame[item_column], "rater": frame[worker], "label": labels}
            parts.append(pd.concat([pd.DataFrame(rows), times], axis=1))
        return take_answers(path, pd.concat(parts), report, notes)


def _questions(
    path: Path, frame: pd.DataFrame, item: str | None, label: str | None, notes: list[str]
) -> Iterator[tuple[str, pd.Series]]:
    """Column of the item and answers of every question: one, or several numbered ones on one page."""
    answers = _answers(path, frame)
    if label is not None:
        chosen = next((name for name in (label, f"{ANSWER}{label}") if name in answers), None)
        if chosen is None:
            raise InputError(
                f"{path}: there is no answer {label!r} among {shorten(list(answers), 20)}. Correct its name."
            )
        answers = {chosen: answers[chosen]}
    pairs = _numbered_pairs(frame, answers) if item is None and len(answers) > 1 else []
    if pairs:
        notes.append(
            f"A page shows {len(pairs)} items: {shorten([f'{shown} with {given}' for shown, given in pairs], 3)}."
        )
        for shown, given in pairs:
            yield shown, answers[given]
        return
    if len(answers) > 1:
        raise InputError(
            f"{path}: there are several answers, {shorten(list(answers), 20)}. Say which is the label: --label "
            f"{next(iter(answers))}."
        )
    (given, values), column = next(iter(answers.items())), _item_column(path, frame, item)
    notes.append(f"The item is {column}, the label {given}.")
    yield column, values


def _answers(path: Path, frame: pd.DataFrame) -> dict[str, pd.Series]:
    """Answers by question; boxes that were ticked or not are one question, the box that was ticked being the answer."""
    found: dict[str, pd.Series] = {}
    boxes: dict[str, dict[str, pd.Series]] = {}
    for name in (name for name in frame.columns if name.startswith(ANSWER)):
        values = frame[name]
        if name == TASK_ANSWERS:
            found[name] = values.map(lambda text, name=name: _from_json(path, text), na_action="ignore")
            continue
        question, dot, option = name.rpartition(".")
        ticked = values.dropna().str.lower()
        if dot and question != ANSWER.rstrip(".") and len(ticked) and ticked.isin([*_YES, *_NO]).all():
            boxes.setdefault(question, {})[option] = values.str.lower().isin(_YES)
        elif values.notna().any():
            found[name] = values
    for question, options in boxes.items():
        table = pd.DataFrame(options)
        one = table.sum(axis=1) == 1
        found[question] = table.idxmax(axis=1).where(one)
    if not found:
        raise InputError(f"{path}: no column {ANSWER}* holds an answer. Download the results anew.")
    return found


def _from_json(path: Path, text: str) -> str | None:
    """The one label in what Amazon's own form elements give: {"category": {"label": "Cat"}}, {"yes": true}, …"""
    try:
        content = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        raise InputError(f"{path}: {TASK_ANSWERS} holds {text[:40]!r}, which is not JSON. Download anew.") from None
    while isinstance(content, (list, dict)):
        if isinstance(content, list):
            if len(content) != 1:
                return None
            content = content[0]
            continue
        if len(content) == 1 and isinstance(value := next(iter(content.values())), (dict, list, str, int, float)):
            content = next(iter(content)) if value is True else value
            if value is False:
                return None
            continue
        if "label" in content:
            content = content["label"]
            continue
        ticked = [name for name, value in content.items() if value is True]
        return ticked[0] if len(ticked) == 1 and all(isinstance(v, bool) for v in content.values()) else None
    return None if content is None else str(content)


def _numbered_pairs(frame: pd.DataFrame, answers: dict[str, pd.Series]) -> list[tuple[str, str]]:
    """Input.image1 with Answer.label1, Input.image2 with Answer.label2, …; nothing where they do not go together."""
    inputs: dict[str, dict[str, str]] = {}
    given: dict[str, dict[str, str]] = {}
    for names, found in ((frame.columns, inputs), (answers, given)):
        for name in names:
            match = re.fullmatch(r"(?:Input|Answer)\.(.*?)_?(\d+)", name)
            if match and name.startswith(INPUT if found is inputs else ANSWER):
                found.setdefault(match[1], {})[match[2]] = name
    stems = [(shown, said) for shown in inputs for said in given if inputs[shown].keys() == given[said].keys()]
    if len(stems) != 1 or len(given) != 1 or sum(len(numbers) for numbers in given.values()) != len(answers):
        return []
    shown, said = stems[0]
    return [(inputs[shown][number], given[said][number]) for number in inputs[shown]]


def _item_column(path: Path, frame: pd.DataFrame, item: str | None) -> str:
    """The column that names items: the one input, one that differs from page to page, or the page itself."""
    if item is not None:
        return need_column(frame, item if item in frame else f"{INPUT}{item}", path)
    inputs = [name for name in frame.columns if name.startswith(INPUT) and frame[name].notna().all()]
    if len(inputs) == 1:
        return inputs[0]
    if "HITId" in frame:
        pages = frame["HITId"].nunique()
        telling = [name for name in inputs if frame[name].nunique() == pages]
        return telling[0] if len(telling) == 1 else "HITId"
    if not inputs:
        raise InputError(f"{path}: there is neither a column {INPUT}* nor HITId that would name the item.")
    raise InputError(
        f"{path}: several columns may name the item, {shorten(inputs, 20)}. Say which: --item {inputs[0]}."
    )
