"""Hugging Face data set folders: Parquet files with a row per item and lists of answers, or a row per answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from annotruth.data.annotations import Lazy
from annotruth.data.answers import SYNONYMS
from annotruth.errors import InputError, shorten
from annotruth.io.case_files import is_parquet_table
from annotruth.io.contents import Contents, Item, safe_name
from annotruth.io.crowd import short_text, take_answers
from annotruth.io.parquet_pictures import find_pictures, picture_column
from annotruth.io.problems import Report, reporting
from annotruth.io.sources import register
from annotruth.io.sources.answer_table import TRUTH_NAMES, guess_column
from annotruth.io.sources.imports import ImportSource

LABEL_LISTS = ("annotations", "labels", "answers", "votes", "annotator_labels", "label_annotations", "label")
RATER_LISTS = (
    "annotators",
    "annotator_ids",
    "annotator_id",
    "workers",
    "worker_ids",
    "raters",
    "rater_ids",
    "user_ids",
)
ARGILLA = ".responses"


@register
class HuggingFace(ImportSource):
    """data/<split>-00000-of-00001.parquet, with ClassLabel names in the files' own head."""

    name = "Hugging Face folder"
    key = "hugging-face"
    description = "a Hugging Face data set's folder of Parquet files, with answers in lists or in rows"
    kind = "labels"
    holds = ("image", "class")
    identity = "a column of annotators, in lists beside the answers or in rows"
    inputs = ("duplicates",)
    options = {  # noqa: RUF012
        "item": "the column that names the item",
        "rater": "the column with the raters, or lists of them",
        "label": "the column with the answers, or lists of them",
    }

    def matches(self, path: Path) -> bool:
        return path.is_dir() and not (path / "raters").is_dir() and bool(_files(path)) and not is_parquet_table(path)

    def read(
        self,
        path: Path,
        report: Report,
        item: str | None = None,
        rater: str | None = None,
        label: str | None = None,
        **_: Any,
    ) -> Contents:
        files = _files(path)
        parts = []
        items: list[Item] = []
        for file in files:
            with reporting(report, file):
                # Rows without a name are told apart by their file, where there are several.
                rows, note, known, found = _read(file, item, rater, label, f"{file.stem}_" if len(files) > 1 else "")
                parts.append((rows, note, known))
                items += found
        if not parts:
            raise InputError(f"{path}: none of the Parquet files can be used. Download them anew.")
        names = list(dict.fromkeys(note for _, note, _ in parts))
        frame = pd.concat([rows for rows, _, _ in parts], ignore_index=True)
        truth = {thing: true for _, _, known in parts for thing, true in known.items()}
        if len(files) > 1:
            names.append(f"{len(files)} Parquet files are read as one.")
        contents = take_answers(path, frame, report, names, truth)
        sizes = {each.image.shape for each in items if isinstance(each.image, Lazy)}
        if len(sizes) > 1:
            contents.notes.append("Pictures differ in size and are left out.")
        elif items:
            contents.items = items
        return contents


def _files(path: Path) -> list[Path]:
    homes = (where for where in (path, path / "data") if where.is_dir())
    return sorted(file for where in homes for file in where.glob("*.parquet") if file.is_file())


def _read(
    file: Path, item: str | None, rater: str | None, label: str | None, prefix: str
) -> tuple[pd.DataFrame, str, dict[str, str], list[Item]]:
    """Rows with item, rater and label, a sentence on where they come from, the truth by item, and pictures."""
    try:
        schema = pyarrow.parquet.read_schema(file)
        columns = [field.name for field in schema if not _holds_bytes(field.type)]
        frame = pyarrow.parquet.read_table(file, columns=columns).to_pandas()
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{file}: cannot be read as Parquet ({error}). Download it anew.") from error
    for name in (name for name in (item, rater, label) if name is not None and name not in frame):
        raise InputError(f"{file}: there is no column {name!r} among {shorten(columns, 20)}. Correct its name.")
    classes = class_names(schema)
    lists = [field.name for field in schema if field.name in frame and _is_list(field.type)]
    label = label or _find(lists, LABEL_LISTS) or _argilla_question(lists) or guess_column(columns, "label")
    rater = rater or _find(lists, RATER_LISTS) or (f"{label}.users" if f"{label}.users" in lists else None)
    rater = rater or guess_column(columns, "rater")
    if label is None or (rater is None and label not in lists):
        raise InputError(
            f"{file}: which columns hold the answers and who gave them, of {shorten(columns, 20)}? Say so: --label and "
            "--rater."
        )
    item = item or _find_item(frame, columns, label, rater)
    numbered = [f"{prefix}row_{number}" for number in range(1, len(frame) + 1)]
    names = [_name(value) for value in frame[item]] if item else numbered
    items: list[Item] = []
    pictures = picture_column(schema)
    safe = [safe_name(name) for name in names]  # pictures are called after their items
    if (
        pictures is not None
        and len({name.casefold() for name in safe}) == len(names)
        and class_of(schema, pictures) != "Audio"
    ):
        names = safe
        items = [Item(name, each.shape[1:], image=each) for name, each in zip(names, find_pictures(file, pictures))]
    told = [name for name in columns if name.lower() in TRUTH_NAMES and name not in (label, rater, item)]
    truth = {}
    if told:
        truth = {
            name: _class(value, classes.get(told[0]))
            for name, value in zip(names, frame[told[0]])
            if not pd.isna(value)
        }
    if label in lists:
        who = frame[rater] if rater is not None and rater in lists else None
        rows = _unfold(file, names, frame[label], who, classes.get(label))
        note = f"Answers stand in lists in {label}, their raters in {rater}."
        if who is None:
            note = f"Answers stand in lists in {label}; nobody says whose they are: the place in the list is the rater."
    else:
        labels = [_class(value, classes.get(label)) for value in frame[label]]
        rows = pd.DataFrame({"item": names, "rater": frame[rater], "label": labels})
        note = f"The item is {item}, the rater {rater}, the label {label}."
    return rows, note, truth, items


def class_of(schema: Any, column: str) -> str | None:
    """What the ``datasets`` library calls a column's kind: "Image", "Audio", …"""
    try:
        return str(json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"][column]["_type"])
    except (KeyError, ValueError, TypeError):
        return None


def class_names(schema: Any) -> dict[str, list[str]]:
    """Names of the classes of every column that has some, as the ``datasets`` library writes them into files."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
    except (KeyError, ValueError, TypeError):
        return {}
    found = {}
    for column, feature in features.items() if isinstance(features, Mapping) else ():
        while isinstance(feature, Mapping) and "feature" in feature:
            feature = feature["feature"]
        while isinstance(feature, list) and len(feature) == 1:
            feature = feature[0]
        if isinstance(feature, Mapping) and isinstance(feature.get("names"), list):
            found[column] = [str(name) for name in feature["names"]]
    return found


def _unfold(
    file: Path, names: list[str], labels: pd.Series, raters: pd.Series | None, classes: list[str] | None
) -> pd.DataFrame:
    rows = []
    for number, (name, given) in enumerate(zip(names, labels), 1):
        given = [] if given is None else list(given)
        who = [f"rater_{place}" for place in range(1, len(given) + 1)]
        if raters is not None:
            found = raters.iloc[number - 1]
            who = [] if found is None else [_name(each) for each in found]
        if len(who) != len(given):
            raise InputError(f"{file}: row {number} has {len(given)} answers of {len(who)} raters. Correct it.")
        rows += [(name, rater, _class(label, classes)) for rater, label in zip(who, given)]
    return pd.DataFrame(rows, columns=["item", "rater", "label"], dtype=object)


def _class(value: Any, classes: list[str] | None) -> Any:
    if isinstance(value, (list, np.ndarray, dict)):
        raise InputError(f"an answer is {value!r}, not one label. Name another column: --label.")
    if classes is not None and isinstance(value, (int, np.integer)):
        return classes[value] if 0 <= value < len(classes) else None
    return value


def _name(value: Any) -> str:
    return short_text(str(value))


def _find(names: list[str], usual: tuple[str, ...]) -> str | None:
    plain = {name.lower(): name for name in names}
    return next((plain[name] for name in usual if name in plain), None)


def _argilla_question(lists: list[str]) -> str | None:
    """Argilla's own export: <question>.responses, beside <question>.responses.users."""
    found = [name for name in lists if name.endswith(ARGILLA) and f"{name}.users" in lists]
    return found[0] if len(found) == 1 else None


def _find_item(frame: pd.DataFrame, columns: list[str], label: str, rater: str | None) -> str | None:
    """A column under a usual name, or text that tells rows apart."""
    others = [name for name in columns if name not in (label, rater)]
    usual = next((name for name in others if name.lower() in SYNONYMS["item"]), None) or guess_column(others, "item")
    if usual is not None:
        return usual
    for name in others:
        if frame[name].map(lambda value: isinstance(value, str)).all() and (name == "text" or frame[name].is_unique):
            return name
    return None


def _is_list(kind: Any) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _holds_bytes(kind: Any) -> bool:
    """Whether a column holds pictures or sounds, which say nothing about answers and are large."""
    if pa.types.is_struct(kind):
        return any(_holds_bytes(kind.field(number).type) for number in range(kind.num_fields))
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
