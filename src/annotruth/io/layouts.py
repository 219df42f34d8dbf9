"""What adapters of published data sets have in common: a look at the names in a folder, and cases made of files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from annotruth.data.annotations import Lazy
from annotruth.errors import InputError
from annotruth.io.contents import Item, Mask
from annotruth.io.files import format_of, image_header, mask_header, read_image, suffix_of
from annotruth.io.formats import nifti
from annotruth.io.masks.planes import read_planes
from annotruth.io.masks.reading import Part, saved_mask
from annotruth.io.masks.rules import BINARY, MaskRule
from annotruth.io.problems import Report, place, reporting

MAX_NAMES, MAX_FOLDERS, MAX_DEPTH = 60, 200, 5
"""How far one looks into a folder to tell what it is."""


def peek_names(path: Path) -> list[str]:
    """Some of the names of files below a folder, relative to it, with / between; none if there is no folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (Path(folder) / "a").mkdir()
    ...     (Path(folder) / "a" / "b.txt").touch()
    ...     peek_names(Path(folder))
    ['a/b.txt']
    """
    found: list[str] = []
    folders = [""]
    for folder in folders:  # grows while it is gone through: nearest folders first
        try:
            entries = sorted(os.scandir(path / folder), key=lambda entry: entry.name)
        except OSError:
            continue
        within = [entry for entry in entries if entry.is_dir() and not entry.name.startswith(".")]
        found += [f"{folder}{entry.name}" for entry in entries if not entry.is_dir()][:MAX_NAMES]
        if folder.count("/") < MAX_DEPTH and len(folders) < MAX_FOLDERS:
            folders += [f"{folder}{entry.name}/" for entry in within]
    return found


def has_name(path: Path, pattern: str) -> bool:
    """Whether a file below a folder has a name that a pattern fits, from the last / on unless the pattern has one."""
    names = peek_names(path) if path.is_dir() else []
    return any(re.search(rf"(?:^|/){pattern}$", name) for name in names)


def find_named(path: Path, pattern: str) -> dict[Path, re.Match[str]]:
    """All files below a folder whose own name a pattern fits as a whole, sorted, with what was found."""
    found = {file: re.fullmatch(pattern, file.name) for file in sorted(path.rglob("*"))}
    return {file: match for file, match in found.items() if match is not None and file.is_file()}


@dataclass(frozen=True)
class Drawing:
    """A mask in files: one, or one for each class with the last on top, and the rule to read them by."""

    parts: tuple[Part, ...]
    rule: MaskRule

    @classmethod
    def of(cls, file: Path, rule: MaskRule) -> Drawing:
        return cls((Part(file),), rule)


@dataclass
class Case:
    """What a published data set holds of one case.

    Attributes
    ----------
    images : its files, one for each channel or one for all; none where there is no image
    masks : by rater
    """

    name: str
    images: tuple[Path, ...] = ()
    masks: dict[str, Drawing | Mask] = field(default_factory=dict)
    truth: Drawing | Mask | None = None
    group: str | None = None
    shape: tuple[int, ...] | None = None


def make_items(cases: Sequence[Case], rank: int, report: Report) -> list[Item]:
    """Items of cases; what is wrong with a case's images is reported and leaves it out."""
    items = []
    for case in cases:
        with reporting(report, _file_of(case), case.name):
            items.append(_item(case, rank))
    return items


def binary_rule(name: str, threshold: float = 127.5) -> MaskRule:
    """The rule of masks whose bright pixels are a class, mostly 0 and 255."""
    return MaskRule("threshold", (BINARY[0], name), (threshold,), palette=False)


def value_rule(classes: Sequence[str], numbers: Mapping[int, int]) -> MaskRule:
    """The rule of masks whose values have class numbers, 255 = not labelled.

    Examples
    --------
    >>> from annotruth.io.masks.planes import Planes
    >>> rule = value_rule(["background", "tumour"], {0: 0, 4: 1, 9: 255})
    >>> rule.apply(Planes(np.array([[[0, 4, 9]]])), "a.png")
    array([[  0,   1, 255]], dtype=uint8)
    """
    return MaskRule("values", tuple(classes), tuple(numbers), numbers=tuple(numbers.values()))


def one_root(path: Path, roots: Sequence[Path], what: str) -> None:
    """Refuse a folder with several data sets, which have raters and classes of their own."""
    names = sorted({root.relative_to(path).as_posix() for root in roots})
    if len(names) > 1:
        raise InputError(f"{path}: there are several {what}: {', '.join(names[:10])}. Name the folder of one of them.")


def _file_of(case: Case) -> Path:
    if case.images:
        return case.images[0]
    drawn = next(iter(case.masks.values()))
    return drawn.file if isinstance(drawn, Mask) else drawn.parts[0].file


def _item(case: Case, rank: int) -> Item:
    shape, spacing, affine = case.shape, None, None
    image: Path | Lazy | None = None
    if case.images:
        head = image_header(case.images[0], rank, place(case.images[0], case.name))
        shape, spacing, image = head.shape[1:], head.spacing, case.images[0]
        if len(case.images) > 1:
            affine = head.affine
            image = Lazy(partial(_read_channels, case.images, rank, case.name), (len(case.images), *shape))
    elif shape is None:
        first = _file_of(case)
        where = place(first, case.name)
        if format_of(first) is nifti and rank == 3:
            shape, spacing, affine = (head := mask_header(first, where)).shape, head.spacing, head.affine
        else:
            shape = read_planes(first, where, rank).shape
    item = Item(case.name, shape, {}, image, group=case.group, affine=affine, spacing=spacing)
    item.masks = {rater: _mask(drawn, rank, shape) for rater, drawn in case.masks.items()}
    item.truth = None if case.truth is None else _mask(case.truth, rank, shape)
    return item


def _mask(drawn: Drawing | Mask, rank: int, shape: tuple[int, ...]) -> Mask:
    return drawn if isinstance(drawn, Mask) else saved_mask(drawn.parts, drawn.rule, rank, shape)


def _read_channels(files: Sequence[Path], rank: int, case: str) -> np.ndarray:
    """Images (channels, *spatial) from a file for each channel."""
    channels = [read_image(file, rank, place(file, case)) for file in files]
    for file, channel in zip(files, channels):
        if channel.shape != channels[0].shape or len(channel) != 1:
            sizes = " and ".join("×".join(map(str, each.shape[1:])) for each in (channel, channels[0]))
            raise InputError(f"{place(file, case)}: the channels of the image differ in size, {sizes}. Replace it.")
    return np.concatenate(channels)


def stem(file: Path) -> str:
    """A file's name without the suffix that a format has."""
    return file.name.removesuffix(suffix_of(file) or file.suffix)
