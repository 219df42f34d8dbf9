"""What was found in somebody else's data set: items, who labelled them, and how to read each mask when it is needed.

A source that is not ours (a labelling tool's export, a paper's folder) gives :class:`Contents`; loading, checking and
importing go on from there. Vector shapes and names may lie in memory, pixels do not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pandas as pd

from annotruth.data.annotations import Annotations, Lazy, Spacing
from annotruth.data.drawings import NEGATIVE_FOLDER
from annotruth.errors import InputError, shorten
from annotruth.io.files import image_header, read_image, suffix_of
from annotruth.io.problems import Problem, Progress, Report, only_rater, place, reporting
from annotruth.validation import MISSING_PIXEL, mask_labels, same_grid


@dataclass(frozen=True)
class Mask:
    """One rater's mask of one item.

    Attributes
    ----------
    file : where it stands, for messages
    read : gives (*spatial) class numbers as uint8, 255 = not labelled; raises InputError, without naming the file.
        Picklable: a module-level function in a ``functools.partial``
    """

    file: Path
    read: Callable[[], np.ndarray]


@dataclass
class Item:
    """An image, and what was drawn on it.

    Attributes
    ----------
    name : see :func:`name_items`
    shape : (*spatial) of its masks
    masks : by rater; nobody's where nobody labelled it
    image : its file, in one of our formats, or (channels, *spatial) to be read; None where there is none
    truth : where it is known
    group : the patient, say
    affine : (4, 4), from voxel numbers to millimetres, where no image file tells
    spacing : millimetres from pixel to pixel along each axis
    origin : what the source itself calls it (a path, an address, a number), for the way back
    """

    name: str
    shape: tuple[int, ...]
    masks: dict[str, Mask] = field(default_factory=dict)
    image: Path | Lazy | None = None
    truth: Mask | None = None
    group: str | None = None
    affine: np.ndarray | None = None
    spacing: Spacing | None = None
    origin: str | None = None


@dataclass
class Contents:
    """What a source holds: ``items`` with masks, or ``answers``, one class per item and rater.

    Attributes
    ----------
    classes : names by class number, the background first; of answers, None finds them in the table
    items : those with masks, or, beside answers, those with an image
    answers : the columns item, rater, label and whatever else is to be kept (times, durations); None for masks
    true_labels : beside answers, the true class by item where it is known
    rater_info : what is known of a rater
    notes : what was understood and done, in sentences for the user
    """

    classes: tuple[str, ...] | None
    items: list[Item] = field(default_factory=list)
    answers: pd.DataFrame | None = None
    true_labels: dict[str, str] = field(default_factory=dict)
    rater_info: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def raters(self) -> tuple[str, ...]:
        """Everybody who labelled anything, in order of first appearance."""
        if self.answers is not None:
            return tuple(map(str, self.answers["rater"].unique()))
        return tuple(dict.fromkeys(rater for item in self.items for rater in item.masks))

    def annotations(self, duplicates: str = "error") -> Annotations:
        """Give annotations whose masks and images are read when they are needed."""
        return self._labels(duplicates) if self.answers is not None else self._masks()

    def _labels(self, duplicates: str) -> Annotations:
        assert self.answers is not None
        names = list(dict.fromkeys(map(str, self.answers["item"])))
        images = {item.name: _lazy_image(item) for item in self.items if item.image is not None}
        made = Annotations.from_table(
            self.answers.astype({"item": str, "rater": str}), classes=self.classes, items=names,
            truth=self.true_labels or None, duplicates=duplicates,  # type: ignore[arg-type]
            rater_info=self.rater_info,
        )  # fmt: skip
        if not images or any(name not in images for name in names):
            return made
        files = {item.name: item.image for item in self.items}
        sources = [file if isinstance(file := files[name], Path) else None for name in names]
        return made.with_images([images[name] for name in names], sources=sources)

    def _masks(self) -> Annotations:
        raters, classes = self.raters, self.classes or ()
        masks, images, truth, sources = [], [], [], []
        has_images = any(item.image is not None for item in self.items)
        has_truth = any(item.truth is not None for item in self.items)
        for item in self.items:
            read = partial(_read_masks, item.name, item.shape, raters, tuple(map(item.masks.get, raters)), len(classes))
            masks.append(Lazy(read, (len(raters), *item.shape)))
            images.append(_lazy_image(item) if has_images else None)
            truth.append(Lazy(partial(_read_mask, item.name, item.shape, None, item.truth, len(classes)), item.shape))
            sources.append(item.image if isinstance(item.image, Path) else None)
        groups = [item.group for item in self.items]
        return Annotations(
            kind="masks", items=[item.name for item in self.items], raters=raters, classes=classes, masks=masks,
            images=images if has_images else None, truth=truth if has_truth else None,
            groups=[str(group) for group in groups] if groups and None not in groups else None,
            rater_info={name: info for name, info in self.rater_info.items() if name in raters},
            sources=sources if any(sources) else None,
            spacing=[item.spacing for item in self.items] if any(item.spacing for item in self.items) else None,
        )  # fmt: skip

    def sound_masks(self, report: Report, progress: Progress | None = None) -> Iterator[tuple[Item, dict[str, Any]]]:
        """Go through the items, giving each with its masks (*spatial) by rater, and reporting those that are bad.

        The truth is nobody's (None). An item of which no mask is left is not given.
        """
        n_classes = len(self.classes or ())
        for done, item in enumerate(self.items, 1):
            owners: list[tuple[str | None, Mask]] = [*item.masks.items()]
            owners += [(None, item.truth)] if item.truth is not None else []
            sound: dict[Any, np.ndarray] = {}
            for rater, mask in owners:
                with reporting(report, mask.file, item.name, rater):
                    sound[rater] = _read_mask(item.name, item.shape, rater, mask, n_classes)
            if sound.keys() & item.masks.keys() or not item.masks:
                yield item, sound
            if progress is not None:
                progress(done, len(self.items))

    def warn(self, path: Path, report: Report) -> None:
        """Warn of what can be read, but is odd."""
        if len(self.raters) == 1:
            report(only_rater(path, self.raters[0]))
        if self.answers is not None:
            return
        bare = [item.name for item in self.items if not item.masks]
        if bare:
            message = f"nobody labelled {len(bare)} of the images: {shorten(bare)}."
            report(Problem("warning", path, None, None, message, incomplete=True))


def _lazy_image(item: Item) -> Lazy | None:
    if not isinstance(item.image, Path):
        return item.image
    rank = len(item.shape) or 2
    where = place(item.image, item.name)
    return Lazy(partial(read_image, item.image, rank, where), image_header(item.image, rank, where).shape)


def _read_masks(
    item: str, shape: tuple[int, ...], raters: tuple[str, ...], masks: tuple[Mask | None, ...], n_classes: int
) -> np.ndarray:
    """One item's masks (raters, *spatial)."""
    return np.stack([_read_mask(item, shape, rater, mask, n_classes) for rater, mask in zip(raters, masks)])


def _read_mask(item: str, shape: tuple[int, ...], rater: str | None, mask: Mask | None, n_classes: int) -> np.ndarray:
    if mask is None:
        return np.full(shape, MISSING_PIXEL, dtype=np.uint8)
    where = place(mask.file, item, rater)
    try:
        pixels = mask.read()
    except InputError as error:
        raise InputError(f"{where}: {str(error).removeprefix(f'{where}: ')}") from None
    except MemoryError as error:
        raise InputError(f"{where}: needs more memory than there is. Is its size right?") from error
    except Exception as error:  # what others write can raise anything inside its reader
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{where}: cannot be read ({reason}). Export it anew.") from error
    same_grid(pixels.shape, shape, where, "the item")
    return mask_labels(pixels, n_classes, where)


def name_items(paths: Mapping[Any, str] | list[str]) -> dict[Any, str]:
    """Name items after their files: by the file's name alone where that tells them apart, otherwise by its path.

    Parameters
    ----------
    paths : the file or path a source names an item by; by the source's own key where the path is not one

    Examples
    --------
    >>> name_items(["left/1.jpg", "left/2.jpg"])
    {'left/1.jpg': '1', 'left/2.jpg': '2'}
    >>> name_items(["left/1.jpg", "right/1.jpg"])
    {'left/1.jpg': 'left_1', 'right/1.jpg': 'right_1'}
    """
    given = paths if isinstance(paths, Mapping) else {path: path for path in paths}
    plain = {key: re.sub(r"[\\/]+", "/", path).strip("/") or "item" for key, path in given.items()}
    plain = {key: path.removesuffix(suffix_of(path) or "") for key, path in plain.items()}
    short = {key: PurePosixPath(path).name for key, path in plain.items()}
    chosen = short if len(set(short.values())) == len(short) else {k: p.replace("/", "_") for k, p in plain.items()}
    return _tell_apart({key: safe_name(name) for key, name in chosen.items()})


def name_raters(names: Mapping[Any, str]) -> dict[Any, str]:
    """Name raters as the source shows them, with the source's own key where two are shown alike.

    Examples
    --------
    >>> name_raters({7: "Ann", 9: "Ann", 12: "bob@site/x"})
    {7: 'Ann (7)', 9: 'Ann (9)', 12: 'bob@site_x'}
    """
    safe = {key: safe_name(str(name)) for key, name in names.items()}
    alike = [name.casefold() for name in safe.values()]
    apart = {key: name if alike.count(name.casefold()) == 1 else f"{name} ({key})" for key, name in safe.items()}
    return _tell_apart({key: safe_name(name) for key, name in apart.items()})


def warn_of_namesakes(path: Path, shown: Mapping[Any, str], named: Mapping[Any, str], report: Report) -> None:
    """Warn of raters whom the source shows under one name.

    Parameters
    ----------
    shown, named : by the source's own key, what it shows and what :func:`name_raters` made of it

    Examples
    --------
    >>> shown = {7: "Ann", 9: "Ann"}
    >>> warn_of_namesakes(Path("export.json"), shown, name_raters(shown), print)
    export.json (rater Ann): 2 raters are shown by this name. They are told apart: Ann (7), Ann (9).
    """
    alike: dict[str, list[str]] = {}
    for key, name in shown.items():
        alike.setdefault(name, []).append(named[key])
    for name, apart in alike.items():
        if len(apart) > 1:
            message = f"{len(apart)} raters are shown by this name."
            advice = f"They are told apart: {shorten(apart)}."
            report(Problem("warning", path, None, name, message, advice, incomplete=True))


def safe_name(name: str) -> str:
    """Give a name that a file or folder may have on every system, as like to the given one as can be.

    Examples
    --------
    >>> safe_name("../Ann: left?")
    '_Ann_ left_'
    """
    cleaned = re.sub(r'[\\/:*?"<>|\x00-\x1f\ud800-\udfff]', "_", name).strip().rstrip(". ").lstrip(". ")
    cleaned = cleaned.removesuffix(NEGATIVE_FOLDER)[:200]
    return cleaned or "unnamed"


def _tell_apart(names: dict[Any, str]) -> dict[Any, str]:
    """Number names that are still alike, also for systems that do not tell small letters from capitals."""
    seen: dict[str, int] = {}
    told = {}
    for key, name in names.items():
        count = seen[name.casefold()] = seen.get(name.casefold(), 0) + 1
        told[key] = name if count == 1 else f"{name}_{count}"
    return told
