"""Labels to be exported: what a fusion or a prediction left, item by item, with the images and names they came from."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import nibabel
import numpy as np

from annotruth.errors import InputError, shorten
from annotruth.io.case_files import IMAGES, LABELS_FILE, TRUTH, TRUTH_FILE, by_number, is_table_folder, list_files
from annotruth.io.dataset import read_dataset
from annotruth.io.files import Pixels, mask_header, read_image, read_mask, suffix_of
from annotruth.io.problems import place, refuse
from annotruth.validation import MISSING_PIXEL

LABELS, PROBABILITIES, FUSION = "labels", "probabilities", "fusion.json"
DISPUTED = "disputed"
"""The class of pixels that are disputed, where they are asked for."""


@dataclass(frozen=True)
class ResultItem:
    """One item's labels.

    Attributes
    ----------
    name, origin : ours, and what the source it was imported from calls it
    file : the labels' file; format and geometry of exports follow it
    shape : (*spatial)
    read_labels : gives (*spatial) class numbers as uint8, 255 = no label
    read_probabilities : gives (classes, *spatial), where they are known
    image : its file, where it is known
    """

    name: str
    origin: str
    file: Path
    shape: tuple[int, ...]
    read_labels: Callable[[], np.ndarray]
    read_probabilities: Callable[[], np.ndarray] | None = None
    image: Path | None = None

    @property
    def affine(self) -> np.ndarray:
        """(4, 4), from voxel numbers to millimetres; the image's, the labels', or none to speak of."""
        for file in (self.image, self.file):
            if file is not None and file.name.lower().endswith((".nii", ".nii.gz")):
                return np.asarray(nibabel.load(file).affine)  # type: ignore[attr-defined]
        return np.eye(4)


@dataclass(frozen=True)
class Answer:
    """One item's class, and how probable it is."""

    name: str
    origin: str
    label: str
    probability: float | None


@dataclass
class Result:
    """What is to be exported: ``items`` with masks, or ``answers``.

    Attributes
    ----------
    classes : names by number; the last is that of disputed pixels, where they are asked for
    maker : who made the labels, for tools that show it
    has_disputed : whether there is such a class
    """

    classes: tuple[str, ...]
    maker: str
    items: list[ResultItem] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    has_disputed: bool = False

    @property
    def kind(self) -> str:
        return "masks" if self.items else "labels"


def read_result(folder: Path, cases: Path | None = None, disputed: float | None = None) -> Result:
    """Find what there is to export in a folder of results; nothing but heads of files is read now.

    Parameters
    ----------
    folder : labels/<case>.<ext> and probabilities/<case>.<ext>, a table truth.csv or labels.csv, or a case folder with
        truth/<case>.<ext>
    cases : the case folder, or folder with a label table, that the results are of
    """
    if disputed is not None and not 0 < disputed <= 1:
        raise InputError(f"disputed= is a probability above 0, up to 1, not {disputed}.")
    fusion = _read_fusion(folder)
    cases = _find_cases(folder, cases, fusion)
    names = _names(cases)
    maker = f"annotruth {fusion['method']}" if "method" in fusion else "annotruth"
    home = next((folder / part for part in (LABELS, TRUTH) if (folder / part).is_dir()), None)
    if home is None:
        table = next((folder / name for name in (TRUTH_FILE, LABELS_FILE) if (folder / name).is_file()), None)
        if table is None:
            raise InputError(f"{folder}: there is neither {LABELS}/ nor {TRUTH}/ nor {TRUTH_FILE} to export.")
        if disputed is not None:
            raise InputError(f"{folder}: disputed= goes with masks; a table's probabilities are exported as they are.")
        return _read_table(table, maker, names)
    files = list_files(home, refuse)
    if not files:
        raise InputError(f"{home}: the folder holds no labels to export.")
    pixels = _pixels(folder, cases, fusion, files)
    chances = list_files(folder / PROBABILITIES, refuse) if (folder / PROBABILITIES).is_dir() else {}
    if disputed is not None and not chances:
        raise InputError(f"{folder}: without {PROBABILITIES}/ nobody knows which pixels are disputed.")
    images = list_files(cases / IMAGES, refuse) if cases is not None and (cases / IMAGES).is_dir() else {}
    items = []
    for case in sorted(files, key=by_number):
        shape = mask_header(files[case], place(files[case], case)).shape
        chance = partial(read_image, chances[case], len(shape), str(chances[case])) if case in chances else None
        read = partial(_read_labels, files[case], case, pixels, disputed, chance)
        items.append(ResultItem(case, names.get(case, case), files[case], shape, read, chance, images.get(case)))
    classes = pixels.classes + ((DISPUTED,) if disputed is not None else ())
    return Result(classes, maker, items, has_disputed=disputed is not None)


def _read_labels(
    file: Path, case: str, pixels: Pixels, disputed: float | None, chance: Callable[[], np.ndarray] | None
) -> np.ndarray:
    where = place(file, case)
    labels = pixels.class_numbers(read_mask(file, where), where)
    if disputed is not None and chance is not None:
        labels = np.where(chance().max(axis=0) < disputed, len(pixels.classes), labels).astype(np.uint8)
    return labels


def _read_fusion(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder of results.")
    try:
        content = json.loads((folder / FUSION).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _find_cases(folder: Path, cases: Path | None, fusion: dict[str, Any]) -> Path | None:
    """The case folder: as given, as the fusion notes it, or the folder itself."""
    if cases is not None:
        if not cases.is_dir():
            raise InputError(f"{cases}: there is no such folder of cases.")
        return cases
    noted = fusion.get("source")
    if isinstance(noted, str) and Path(noted).is_dir():
        return Path(noted)
    return folder if (folder / TRUTH).is_dir() else None


def _names(cases: Path | None) -> dict[str, str]:
    """What items are called where they were imported from."""
    imported = read_dataset(cases).imported if cases is not None else None
    names = (imported or {}).get("names", {})
    return {str(item): str(name) for item, name in names.items()} if isinstance(names, dict) else {}


def _pixels(folder: Path, cases: Path | None, fusion: dict[str, Any], files: dict[str, Path]) -> Pixels:
    """What pixel values mean: as the fusion says, or the cases' dataset.json, or as they stand."""
    if isinstance(fusion.get("pixel_values"), dict):
        values = {str(name): int(value) for name, value in fusion["pixel_values"].items()}
        missing = None if MISSING_PIXEL in values.values() else MISSING_PIXEL
        return Pixels(tuple(values), tuple(values.values()), missing)
    dataset = read_dataset(cases) if cases is not None else None
    if dataset is not None and dataset.class_names is not None and dataset.class_values is not None:
        return Pixels(dataset.class_names, dataset.class_values, dataset.missing)
    highest = max(int(values[values != MISSING_PIXEL].max(initial=0)) for values in map(_values, files.values()))
    names = ("background", *(f"class_{number}" for number in range(1, max(highest, 1) + 1)))
    return Pixels(names, tuple(range(len(names))), MISSING_PIXEL)


def _values(file: Path) -> np.ndarray:
    return np.unique(read_mask(file, str(file)))


def _read_table(table: Path, maker: str, names: dict[str, str]) -> Result:
    """Read item, truth (or label) and the probabilities of classes."""
    with table.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    column = next((name for name in ("truth", "label") if rows and name in rows[0]), None)
    if column is None or (is_table_folder(table.parent) and table.name == LABELS_FILE):
        raise InputError(f"{table}: this is no table of results; it needs the columns item and truth.")
    prefix = "probability of "
    classes = tuple(name.removeprefix(prefix) for name in rows[0] if name.startswith(prefix))
    answers = []
    for row in rows:
        label = row[column]
        if label:
            chance = row.get(f"{prefix}{label}")
            answers.append(
                Answer(row["item"], names.get(row["item"], row["item"]), label, float(chance) if chance else None)
            )
    if not answers:
        raise InputError(f"{table}: no item has a label ({shorten([row['item'] for row in rows])}).")
    return Result(classes or tuple(sorted({answer.label for answer in answers})), maker, answers=answers)


def image_suffix(item: ResultItem) -> str:
    """The suffix of an item's image, or of its labels."""
    return suffix_of(item.image if item.image is not None else item.file) or ""
