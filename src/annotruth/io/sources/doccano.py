"""doccano: an exported archive, that is a folder with a file of JSON lines for each user."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from annotruth.errors import InputError
from annotruth.io.contents import Contents
from annotruth.io.crowd import peek_json, read_json_lines, short_text, take_answers
from annotruth.io.drawn import parsing
from annotruth.io.problems import Problem, Report
from annotruth.io.sources import register
from annotruth.io.sources.imports import ImportSource

SHARED = "all"
"""doccano's file of a project in which all users share one set of labels."""
_LABEL_KEYS = ("label", "labels", "category")


@register
class Doccano(ImportSource):
    """<user>.jsonl with {"id", "text" or "filename", "label": ["…"]}."""

    name = "doccano export"
    key = "doccano"
    description = "doccano's export: one <user>.jsonl each"
    kind = "labels"
    identity = "the file's name, or annotations' user"
    inputs = ("duplicates",)
    suffixes = (".jsonl",)

    def matches(self, path: Path) -> bool:
        if path.is_dir():
            files = _files(path)
            return bool(files) and all(_is_doccano(peek_json(file)) for file in files[:3])
        return path.suffix.lower() == ".jsonl" and _is_doccano(peek_json(path))

    def read(self, path: Path, report: Report, **_: Any) -> Contents:
        rows: list[dict[str, Any]] = []
        several = shared = 0
        for file in _files(path) if path.is_dir() else [path]:
            for _number, found in read_json_lines(file, report):
                with parsing(report, file):
                    answers = list(_answers(found, file.stem))
                    shared += file.stem == SHARED and "annotations" not in found
                    several += any(label is None for _, label in answers)
                    rows += [{"item": _item(found), "rater": who, "label": label} for who, label in answers if label]
        if several:
            message = f"{several} items are left out for some users: they bear no label, or several at once."
            report(Problem("warning", path, None, None, message))
        if not rows:
            raise InputError(f"{path}: no item bears one label; spans and relations are not read from doccano.")
        notes = []
        if shared:
            notes.append(
                f"{SHARED}.jsonl does not say who gave a label: they are one rater's. Export a project in which users "
                "do not share annotations, to know."
            )
        return take_answers(path, pd.DataFrame(rows), report, notes)


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.glob("*.jsonl") if file.is_file())


def _is_doccano(first: dict[str, Any] | None) -> bool:
    if first is None or "answer" in first or not ("text" in first or "filename" in first or "data" in first):
        return False
    annotations = first.get("annotations")
    if isinstance(annotations, list):
        return all(isinstance(each, dict) and "user" in each and "label" in each for each in annotations)
    return any(isinstance(first.get(key), list) for key in _LABEL_KEYS)


def _answers(found: dict[str, Any], user: str) -> Iterator[tuple[str, str | None]]:
    """Who gave which label: the file's user, or each user that annotations name; None where it is not just one."""
    if isinstance(found.get("annotations"), list):
        by_user: dict[str, list[Any]] = {}
        for each in found["annotations"]:
            if not isinstance(each, dict) or "label" not in each:
                raise InputError(f"annotations hold {each!r}, which names no label. Export anew.")
            by_user.setdefault(str(each.get("user", user)), []).append(each["label"])
        for who, labels in by_user.items():
            yield who, _only(labels)
        return
    given: Any = next((found[key] for key in _LABEL_KEYS if key in found), [])
    yield user, _only(given if isinstance(given, list) else [given])


def _only(labels: list[Any]) -> str | None:
    return str(labels[0]) if len(labels) == 1 and isinstance(labels[0], (str, int)) else None


def _item(found: dict[str, Any]) -> str:
    for key in ("filename", "id"):
        if isinstance(found.get(key), (str, int)):
            return str(found[key])
    return short_text(str(found.get("text") or found.get("data") or ""))
