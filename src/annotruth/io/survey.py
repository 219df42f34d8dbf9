"""A case folder seen from its files' heads: what there is, how large, and whether it fits together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from annotruth.errors import InputError, shorten
from annotruth.io.dataset import FILE_NAME, Dataset, known_names, read_dataset
from annotruth.io.files import image_header, mask_header, read_mask
from annotruth.io.formats.header import Header
from annotruth.io.grid import same_place
from annotruth.io.layout import RATERS, TRUTH, Layout, scan
from annotruth.io.pixels import Pixels, refuse_unnamed_value, settle_classes
from annotruth.io.problems import Problem, Report, place, reporting
from annotruth.parallel import MapFunction
from annotruth.validation import MISSING_PIXEL

Progress = Callable[[int, int], None]
"""Told how many files are done, of how many."""


@dataclass(frozen=True)
class Survey:
    """What is known of a case folder without reading pixels.

    Attributes
    ----------
    listed : all files
    layout : those whose heads are sound
    dataset : the content of ``dataset.json``; None if it is unusable
    rank : how many spatial axes there are; 0 if no mask could be read
    shapes : spatial size by case
    channels : number of channels by case, where there are images
    """

    folder: Path
    listed: Layout
    layout: Layout
    dataset: Dataset | None
    rank: int
    shapes: dict[str, tuple[int, ...]]
    channels: dict[str, int]

    @property
    def marked(self) -> list[tuple[str | None, str, Path]]:
        """The masks that show what pixel values mean: the raters', or the true ones where there are no raters."""
        return [mask for mask in self.layout.masks if mask[0] is not None or not self.layout.raters]

    @property
    def home(self) -> Path:
        """The folder these masks lie in."""
        return self.folder / (RATERS if self.layout.raters else TRUTH)


def survey(folder: Path, report: Report, truth: Path | None = Path(TRUTH)) -> Survey:
    """Read ``dataset.json`` and the heads of all files, reporting what is wrong and leaving it out."""
    layout = scan(folder, report, truth=truth)
    return survey_files(folder, layout, settings(folder, layout, report), report)


def settings(folder: Path, layout: Layout, report: Report) -> Dataset | None:
    """Read ``dataset.json`` and see that it speaks of this folder's raters and cases."""
    path = folder / FILE_NAME
    dataset = None
    with reporting(report, path):
        dataset = read_dataset(folder)
        if layout.raters:
            known_names(dataset.raters, layout.raters, "raters", "raters", path)
    with reporting(report, path):
        if dataset is not None and dataset.groups:
            known_names(dataset.groups, layout.cases, "groups", "cases", path)
            lacking = sorted(set(layout.cases) - dataset.groups.keys())
            if lacking:
                raise InputError(f"{path}: groups leaves out {shorten(lacking)}. Name every case's group, or none.")
    return dataset


def survey_files(folder: Path, layout: Layout, dataset: Dataset | None, report: Report, rank: int = 0) -> Survey:
    """Survey the files of a layout; ``rank`` is needed where no mask can tell the number of spatial axes."""
    heads: dict[Path, Header] = {}
    for rater, case, path in layout.masks:
        with reporting(report, path, case, rater):
            heads[path] = mask_header(path, place(path, case, rater))
    # Most masks decide how many axes are spatial: a single odd one is then the one to be blamed.
    rank = Counter(len(head.shape) for head in heads.values()).most_common(1)[0][0] if heads else rank
    references, channels = _image_heads(layout, rank, dataset, report)
    good = {layout.images[case] for case in channels}
    for rater, case, path in layout.masks:
        if path in heads:
            with reporting(report, path, case, rater):
                _fits(heads[path], rank, references.get(case), place(path, case, rater))
                references.setdefault(case, (f"the mask {path}", heads[path]))
                good.add(path)
    shapes = {case: head.shape for case, (_, head) in references.items()}
    return Survey(folder, layout, layout.only(good), dataset, rank, shapes, channels)


def read_classes(
    found: Survey, report: Report, progress: Progress | None = None, across: MapFunction = map
) -> tuple[Pixels, dict[Path, list[int]]]:
    """Read every mask once; give the classes, and the distinct pixel values of each mask that keeps to them."""
    masks = found.layout.masks
    values: dict[Path, list[int]] = {}
    for done, ((_, _, path), seen) in enumerate(zip(masks, across(_values_or_problem, masks)), 1):
        if isinstance(seen, Problem):
            report(seen)
        else:
            values[path] = seen
        if progress is not None:
            progress(done, len(masks))
    # Without a usable dataset.json nothing can be said against a value.
    dataset = found.dataset if found.dataset is not None else Dataset(missing=MISSING_PIXEL)
    with reporting(report, found.home):
        marks = {value for _, _, path in found.marked for value in values.get(path, ())}
        refuse_unnamed_value(dataset, marks, found.home)
    pixels = settle_classes(dataset, {value for seen in values.values() for value in seen})
    sound = {}
    for rater, case, path in masks:
        if path in values:
            with reporting(report, path, case, rater):
                pixels.class_numbers(np.array(values[path]), place(path, case, rater))
                sound[path] = values[path]
    return pixels, sound


def mask_values(path: Path, where: str) -> list[int]:
    """Give the distinct pixel values of a mask."""
    return [int(value) for value in np.unique(read_mask(path, where))]


def _values_or_problem(mask: tuple[str | None, str, Path]) -> list[int] | Problem:
    rater, case, path = mask
    problems: list[Problem] = []
    with reporting(problems.append, path, case, rater):
        return mask_values(path, place(path, case, rater))
    return problems[0]


def _image_heads(
    layout: Layout, rank: int, dataset: Dataset | None, report: Report
) -> tuple[dict[str, tuple[str, Header]], dict[str, int]]:
    """Give, by case, what masks are measured against (with its name for messages), and the number of channels."""
    references: dict[str, tuple[str, Header]] = {}
    channels: dict[str, int] = {}
    for case, path in layout.images.items() if rank else ():
        where = place(path, case)
        with reporting(report, path, case):
            head = image_header(path, rank, where)
            references[case] = ("the image", Header(head.shape[1:], head.affine))
            if dataset is not None and dataset.channels is not None and len(dataset.channels) != head.shape[0]:
                raise InputError(
                    f"{where}: the image has {head.shape[0]} channels, {FILE_NAME} names {len(dataset.channels)} "
                    f"({shorten(dataset.channels)}). Correct the one or the other."
                )
            channels[case] = head.shape[0]
    return references, channels


def _fits(mask: Header, rank: int, reference: tuple[str, Header] | None, where: str) -> None:
    if reference is not None:
        same_place(mask, reference[1], reference[0], where)
    elif len(mask.shape) != rank:
        raise InputError(f"{where}: the mask has {len(mask.shape)} axes, others have {rank}. Keep to one kind.")
