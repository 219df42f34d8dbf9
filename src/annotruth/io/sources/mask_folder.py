"""Mask folders: images and a folder per rater, with masks in colour, with soft edges, in layers, or one per class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from annotruth.errors import InputError, shorten
from annotruth.io.case_files import IMAGES, RATERS, by_number
from annotruth.io.contents import Contents, Item
from annotruth.io.files import DATASET_FILE, case_of, format_of, suffix_of
from annotruth.io.formats import jpeg, npy
from annotruth.io.masks.joining import split_class
from annotruth.io.masks.planes import read_planes
from annotruth.io.masks.reading import Part, find_rank, image_shape, saved_mask
from annotruth.io.masks.rules import MaskRule, read_colours, settle_rule
from annotruth.io.masks.tally import Tally
from annotruth.io.problems import Problem, Report, place, reporting
from annotruth.io.sources import register
from annotruth.io.sources.imports import ImportSource

IMAGE_FOLDERS = (IMAGES, "image", "imgs", "img")
RATER_FOLDERS = (RATERS, "labels", "masks", "annotations", "experts", "annotators")
MAX_PEEKED = 5
"""Raters whose first mask is looked at, to tell whether it is saved as a case folder's would be."""


@dataclass(frozen=True)
class Found:
    """A file of a mask: whose, of which case and, where there is a file per class, of which class."""

    file: Path
    rater: str
    case: str
    label: str | None


@register
class MaskFolder(ImportSource):
    """images/<case>.<ext> and raters/<rater>/<case>.<ext>.

    With a file for each class <case>_<class>.<ext>, <class>/<case>.<ext> or <case>/<class>.<ext>.
    """

    name = "mask folder"
    key = "mask-folder"
    description = (
        "images and a folder of masks per rater, in colour, with soft edges, in layers or with a file per class"
    )
    kind = "masks"
    holds = ("image", "mask", "3D")
    identity = "the folder's name"
    options = {  # noqa: RUF012
        "colours": 'class by colour, "#ff0000=tumour,#00ff00=organ"; otherwise each colour is a class',
        "threshold": "the value above which a pixel is marked",
        "classes": "names of the classes, the background first, with commas between them",
        "resize": "true: masks that are larger or smaller than the image by a whole number are brought to its size",
    }

    def matches(self, path: Path) -> bool:
        home = _rater_home(path)
        if home is None:
            return False
        if home.name != RATERS:
            return True
        if (path / DATASET_FILE).exists():  # somebody has said what a case folder's masks mean
            return False
        raters = [folder for folder in sorted(home.iterdir()) if folder.is_dir()][:MAX_PEEKED]
        return bool(raters) and all(map(_is_odd, raters))

    def read(
        self,
        path: Path,
        report: Report,
        colours: str | Sequence[str] | Mapping[str, str] | None = None,
        threshold: float | None = None,
        classes: str | Sequence[str] | None = None,
        resize: bool = False,
        **_: Any,
    ) -> Contents:
        home = _rater_home(path)
        if home is None:
            raise InputError(f"{path}: there is no folder {' or '.join(RATER_FOLDERS)} with a folder for each rater.")
        images = _list_images(path, report)
        masks = list(_list_masks(home, list(images), report))
        if not masks:
            raise InputError(f"{home}: there is no mask in any rater's folder.")
        rank = find_rank(next(iter(images.values()), None), masks[0].file)
        tally, sizes = _count(masks, rank, colours is not None, report)
        names = classes.split(",") if isinstance(classes, str) else classes
        labels = list(dict.fromkeys(each.label for each in masks if each.label is not None))
        with_named = None if labels else [str(name).strip() for name in names] if names is not None else None
        try:
            rule = settle_rule(tally, _colours(colours), threshold, with_named)
        except InputError as error:
            raise InputError(f"{home}: {error}") from None
        order, notes = _class_order(labels, names, masks, sizes, rule, home)
        items = _items(masks, images, rule, order, rank, resize, report)
        known = rule.classes if not labels else ("background", *sorted(order, key=order.__getitem__))
        return Contents(known, items, notes=[*rule.notes, *notes])


def _rater_home(path: Path) -> Path | None:
    """The folder with a folder for each rater; beside it images, unless it is called raters."""
    if not path.is_dir():
        return None
    for name in RATER_FOLDERS:
        home = path / name
        if home.is_dir() and any(entry.is_dir() for entry in home.iterdir()):
            with_images = any((path / images).is_dir() for images in IMAGE_FOLDERS)
            return home if with_images or name == RATERS else None
    return None


def _is_odd(folder: Path) -> bool:
    """Whether the first mask of a rater is none that a case folder could hold."""
    entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    first = next(iter(entries), None)
    if first is None or first.is_dir():
        return first is not None and any(suffix_of(file) for file in first.iterdir())
    if suffix_of(first) is None or format_of(first) is npy:  # an array's axes may be anything
        return False
    if format_of(first) is jpeg:
        return True
    tally = Tally()
    try:
        planes = read_planes(first, str(first))
        tally.add(planes, str(first))
        if len(planes.pixels) > 1 or tally.from_alpha:
            return True
        return settle_rule(tally).kind == "threshold"
    except InputError:
        return False


def _list_images(path: Path, report: Report) -> dict[str, Path]:
    folder = next((path / name for name in IMAGE_FOLDERS if (path / name).is_dir()), None)
    if folder is None:
        return {}
    images: dict[str, Path] = {}
    for file in sorted(folder.iterdir(), key=lambda file: by_number(file.name)):
        if file.is_file() and suffix_of(file) is not None:
            with reporting(report, file, case_of(file)):
                if case_of(file) in images:
                    raise InputError(f"the case is there twice, also as {images[case_of(file)].name}. Remove one.")
                images[case_of(file)] = file
    return images


def _list_masks(home: Path, cases: Sequence[str], report: Report) -> Iterator[Found]:
    """Masks by rater, case and class; what belongs to no image is reported."""
    for folder in sorted(
        (entry for entry in home.iterdir() if entry.is_dir()), key=lambda entry: by_number(entry.name)
    ):
        for file in sorted(folder.rglob("*"), key=lambda file: by_number(str(file))):
            if not file.is_file() or file.name.startswith(".") or suffix_of(file) is None:
                continue
            inner = file.relative_to(folder).parts[:-1]
            name = case_of(file)
            found = _owner(name, inner, cases)
            if found is None:
                message = "there is a mask, but no image of that name."
                report(Problem("fatal", file, name, folder.name, message, "Remove or rename it, or add the image."))
            else:
                yield Found(file, folder.name, *found)


def _owner(name: str, inner: Sequence[str], cases: Sequence[str]) -> tuple[str, str | None] | None:
    """Case and class of a mask by its name and the folders between it and its rater's."""
    if not inner:
        if not cases or name in cases:
            return name, None
        return split_class(name, cases)
    if not cases:
        return name, inner[-1]
    if name in cases:
        return name, inner[-1]
    if inner[-1] in cases:
        return inner[-1], name
    return split_class(name, cases)


def _count(masks: Sequence[Found], rank: int, coloured: bool, report: Report) -> tuple[Tally, dict[str, Tally]]:
    """Count values over all masks, and over those of each class; files that cannot be read are told of later."""
    whole = Tally()
    by_label: dict[str, Tally] = {}
    for each in masks:
        where = place(each.file, each.case, each.rater)
        try:
            planes = read_planes(each.file, where, rank, palette=not coloured)
            lossy = format_of(each.file) is jpeg
            whole.add(planes, where, lossy)
            if each.label is not None:
                by_label.setdefault(each.label, Tally()).add(planes, where, lossy)
        except InputError:
            continue
    if not whole.n_files:
        with reporting(report, masks[0].file, masks[0].case, masks[0].rater):
            read_planes(masks[0].file, place(masks[0].file, masks[0].case, masks[0].rater), rank)
        raise InputError(f"{masks[0].file.parent}: no mask can be read.")
    return whole, by_label


def _class_order(
    labels: list[str],
    names: Sequence[str] | None,
    masks: Sequence[Found],
    sizes: Mapping[str, Tally],
    rule: MaskRule,
    home: Path,
) -> tuple[dict[str, int], list[str]]:
    """Class numbers by name where there is a file per class, those that mark most first: they lie below."""
    if not labels:
        return {}, []
    if len(rule.classes) != 2 or rule.kind == "layers":
        raise InputError(
            f"{home}: there is a file for each class ({shorten(labels)}), but files hold {len(rule.classes)} classes "
            f"({shorten(rule.classes)}). Keep to one of the two ways."
        )
    if any(each.label is None for each in masks):
        whole = next(each.file for each in masks if each.label is None)
        raise InputError(f"{whole}: names no class, while others do ({shorten(labels)}). Keep to one of the two ways.")
    wanted = [str(name).strip() for name in names or []]
    if names is not None and sorted(wanted[1:]) != sorted(labels):
        raise InputError(
            f"{home}: classes name {shorten(wanted)}; files are of {shorten(labels)}. Name the background too."
        )

    def marked(label: str) -> int:
        counts = sizes[label].values.all if label in sizes else {}
        cut = rule.values[0] if rule.kind == "threshold" else min(rule.values, default=0)
        return sum(count for value, count in counts.items() if value > cut)

    ordered = wanted[1:] or sorted(labels, key=lambda label: (-marked(label), label))
    note = f"There is a file for each class; where several mark a pixel, the last of {shorten(ordered, 10)} counts."
    return {label: number for number, label in enumerate(ordered, 1)}, [note]


def _items(
    masks: Sequence[Found],
    images: Mapping[str, Path],
    rule: MaskRule,
    order: Mapping[str, int],
    rank: int,
    resize: bool,
    report: Report,
) -> list[Item]:
    owners: dict[str, dict[str, list[Part]]] = {case: {} for case in images}
    for each in masks:
        number = order[each.label] if each.label is not None else None
        owners.setdefault(each.case, {}).setdefault(each.rater, []).append(Part(each.file, number))
    items = []
    for case, raters in owners.items():
        image = images.get(case)
        first = next(iter(raters.values()))[0].file if raters else image
        with reporting(report, image or first or Path(case), case):
            if image is not None:
                shape = image_shape(image, rank, case)
            else:
                assert first is not None
                shape = read_planes(first, place(first, case), rank).shape
            saved = {}
            for rater, parts in raters.items():
                ordered = sorted(parts, key=lambda part: part.number or 0)
                saved[rater] = saved_mask(ordered, rule, rank, shape, bool(resize))
            items.append(Item(case, shape, saved, image))
    return items


def _colours(given: str | Sequence[str] | Mapping[str, str] | None) -> dict[str, str] | None:
    if given is None:
        return None
    if isinstance(given, Mapping):
        given = [f"{colour}={name}" for colour, name in given.items()]
    return read_colours(given.split(",") if isinstance(given, str) else given)
