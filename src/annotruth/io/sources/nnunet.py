"""nnU-Net's raw data folders, and those of the Medical Segmentation Decathlon, from which they come."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from annotruth.errors import InputError
from annotruth.io.contents import Contents
from annotruth.io.drawn import read_json
from annotruth.io.files import DATASET_FILE, suffix_of
from annotruth.io.layouts import Case, Drawing, make_items, stem, value_rule
from annotruth.io.masks.reading import find_rank
from annotruth.io.masks.rules import MaskRule
from annotruth.io.problems import Problem, Report, reporting
from annotruth.io.sources import register
from annotruth.io.sources.imports import ImportSource
from annotruth.validation import MISSING_PIXEL

IMAGES, LABELS = "imagesTr", "labelsTr"
FIRST_RATER = "labels"
IGNORE = "ignore"


class TrainingFolder(ImportSource):
    """imagesTr, labelsTr and dataset.json; further raters in labelsTr_<rater>."""

    kind = "masks"
    holds = ("image", "mask", "3D")
    identity = "one rater, called labels; what stands behind labelsTr_ where somebody has several"
    key_of_channels = ""

    def matches(self, path: Path) -> bool:
        if not ((path / LABELS).is_dir() and (path / DATASET_FILE).is_file()):
            return False
        try:
            content = read_json(path / DATASET_FILE)
        except InputError:
            content = None
        if not isinstance(content, Mapping):  # damaged: the names of the files tell
            numbered = any(re.search(r"_\d{4}$", stem(file)) for file in (path / IMAGES).glob("*"))
            return numbered == (self.key_of_channels == "channel_names")
        return ("modality" in content) == (self.key_of_channels == "modality")

    def read(self, path: Path, report: Report, **_: Any) -> Contents:
        content = read_json(path / DATASET_FILE)
        if not isinstance(content, Mapping) or not isinstance(content.get("labels"), Mapping):
            raise InputError(f"{path / DATASET_FILE}: there is no object of labels, {{ … }}. Restore it.")
        rule = label_rule(content, path / DATASET_FILE)
        cases: dict[str, Case] = {}
        folders = sorted(folder for folder in path.glob(f"{LABELS}*") if folder.is_dir())
        for folder in folders:
            rater = folder.name.removeprefix(LABELS).strip("_-. ") or FIRST_RATER
            for file in sorted(folder.iterdir()):
                if suffix_of(file) is None or file.name.startswith("."):
                    continue
                name = stem(file)
                if name not in cases:
                    images = self.find_images(path, name)
                    if not images and (path / IMAGES).is_dir():
                        message = f"there is a mask, but no image of that name in {IMAGES}."
                        report(Problem("fatal", file, name, rater, message, "Add it, or remove the mask."))
                        continue
                    cases[name] = Case(name, images)
                cases[name].masks[rater] = Drawing.of(file, rule)
        if not cases:
            raise InputError(f"{path / LABELS}: there is no mask with an image.")
        ranks = []
        for case in cases.values():
            first = case.masks[next(iter(case.masks))].parts[0].file  # type: ignore[union-attr]
            with reporting(report, first, case.name):
                ranks.append(find_rank(None, first))
                break
        rank = ranks[0] if ranks else 3
        channels = content.get(self.key_of_channels)
        notes = []
        if isinstance(channels, Mapping):
            notes.append(f"The image's channels are {', '.join(map(str, channels.values()))}.")
        return Contents(rule.classes, make_items(list(cases.values()), rank, report), notes=notes)

    def find_images(self, path: Path, name: str) -> tuple[Path, ...]:
        """An image's files, a channel each or all in one."""
        raise NotImplementedError


@register
class NnUnet(TrainingFolder):
    """imagesTr/<case>_0000.nii.gz …, labelsTr/<case>.nii.gz, dataset.json with channel_names and labels."""

    name = "nnU-Net folder"
    key = "nnunet"
    description = "nnU-Net's imagesTr/<case>_0000.nii.gz with labelsTr/<case>.nii.gz and dataset.json"
    key_of_channels = "channel_names"

    def find_images(self, path: Path, name: str) -> tuple[Path, ...]:
        files = sorted((path / IMAGES).glob(f"{_escape(name)}_[0-9][0-9][0-9][0-9].*"))
        return tuple(file for file in files if re.fullmatch(rf"{re.escape(name)}_\d{{4}}", stem(file)))


@register
class Decathlon(TrainingFolder):
    """imagesTr/<case>.nii.gz with all channels, labelsTr/<case>.nii.gz, dataset.json with modality and labels."""

    name = "Decathlon folder"
    key = "msd"
    description = "the Medical Segmentation Decathlon's imagesTr and labelsTr with dataset.json"
    key_of_channels = "modality"

    def find_images(self, path: Path, name: str) -> tuple[Path, ...]:
        return tuple(file for file in sorted((path / IMAGES).glob(f"{_escape(name)}.*")) if stem(file) == name)


def label_rule(content: Mapping[str, Any], file: Path) -> MaskRule:
    """Classes and values from dataset.json: names by value (Decathlon) or values by name (nnU-Net).

    nnU-Net's regions are lists of values; what is saved is the last region of ``regions_class_order`` that fits.
    """
    labels = content["labels"]
    values: dict[str, Any] = {}
    for key, value in labels.items():
        if isinstance(value, str):
            values[value] = key
        else:
            values[str(key)] = value
    try:
        if any(isinstance(value, (list, tuple)) for value in values.values()):
            return _region_rule(values, content.get("regions_class_order"))
        numbers = {name: int(value) for name, value in values.items()}
    except (TypeError, ValueError):
        raise InputError(f"{file}: labels name a value that is no whole number. Correct it.") from None
    missing = numbers.pop(IGNORE, None)
    ordered = sorted(numbers, key=numbers.__getitem__)
    if len(ordered) < 2 or len(set(numbers.values())) < len(numbers):
        raise InputError(f"{file}: labels must name two classes or more, each with a value of its own. Correct it.")
    table = {numbers[name]: number for number, name in enumerate(ordered)}
    return value_rule(ordered, table | ({} if missing is None else {missing: MISSING_PIXEL}))


def _region_rule(values: dict[str, Any], order: Any) -> MaskRule:
    """The rule of overlapping regions: a pixel belongs to the last region, in the order, that its value is part of."""
    missing = values.pop(IGNORE, None)
    regions = [name for name, value in values.items() if name != "background"]
    ranked = regions if order is None else [name for _, name in sorted(zip(order, regions), key=lambda pair: pair[0])]
    table = {0: 0}
    for number, name in enumerate(ranked, 1):
        parts = values[name] if isinstance(values[name], (list, tuple)) else [values[name]]
        table |= {int(value): number for value in parts}
    return value_rule(["background", *ranked], table | ({} if missing is None else {int(missing): MISSING_PIXEL}))


def _escape(name: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", name)
