"""Label tables: CSV or Parquet with a row per answer, and pictures or features of the items beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from annotruth.data.annotations import Annotations, Lazy
from annotruth.errors import InputError, shorten
from annotruth.io.case_files import (
    IMAGES,
    LABELS_FILE,
    TRUTH_FILE,
    is_parquet_table,
    is_table_folder,
    list_files,
)
from annotruth.io.features import read_features
from annotruth.io.files import image_header, read_image
from annotruth.io.names import told_apart
from annotruth.io.problems import Problem, Progress, Report, only_rater, place, refuse, reporting
from annotruth.io.sources import Source, register
from annotruth.io.tables import (
    SUFFIXES,
    Column,
    find_missing_values,
    load_table,
    make_annotations,
    read_table,
    read_truth,
)

MANY_ANSWERS = 5
"""Answers from which it is odd that they are all the same."""


@register
class LabelTable(Source):
    """A file, or a folder of Parquet files, with the columns item, rater, label; truth in one with item and truth."""

    name = "label table"
    description = "a CSV or Parquet file, or a folder of Parquet files, with the columns item, rater, label"
    kind = "labels"
    inputs = ("truth", "images", "features", "duplicates")
    suffixes = SUFFIXES
    general = True

    def matches(self, path: Path) -> bool:
        in_file = path.is_file() and path.suffix.lower() in SUFFIXES
        return in_file or is_table_folder(path) or is_parquet_table(path)

    def load(  # type: ignore[override]  # the inputs that it declares
        self,
        path: Path,
        *,
        truth: Path | None = None,
        images: Path | None = None,
        features: Path | None = None,
        duplicates: str = "error",
    ) -> Annotations:
        """Load the answers, and put pictures or features to the items."""
        path, truth, images = in_folder(path, truth, images, features)
        table = load_table(path, truth, duplicates)
        _refuse_both(images, features)
        if features is not None:
            return table.with_images(read_features(features).of(table.items, features))
        if images is None:
            return table
        found = find_pictures(images, table.items, refuse)
        return table.with_images(
            [found.lazy(item) for item in table.items], sources=[found.files[item] for item in table.items]
        )

    def find_truth(self, truth: Path) -> Path:
        truth = super().find_truth(truth)
        if truth.suffix.lower() not in SUFFIXES:
            raise InputError(f"{truth}: the known truth of a label table is a table with the columns item and truth.")
        return truth

    def check(  # type: ignore[override]
        self,
        path: Path,
        report: Report,
        progress: Progress | None = None,
        *,
        truth: Path | None = None,
        images: Path | None = None,
        features: Path | None = None,
        duplicates: str = "error",
    ) -> None:
        path, truth, images = in_folder(path, truth, images, features)
        items = _check_answers(path, report, duplicates)
        with reporting(report, path):
            _refuse_both(images, features)
        if truth is not None:
            with reporting(report, truth):
                read_truth(truth)
        if images is not None:
            with reporting(report, images):
                _check_pictures(images, items, report, progress)
        if features is not None:
            with reporting(report, features):
                read_features(features).of(items, features)


def in_folder(
    path: Path, truth: Path | None = None, images: Path | None = None, features: Path | None = None
) -> tuple[Path, Path | None, Path | None]:
    """Table, truth and pictures in a folder that an import made, as far as others are not given."""
    if not is_table_folder(path):
        return path, truth, images
    if truth is None and (path / TRUTH_FILE).is_file():
        truth = path / TRUTH_FILE
    if images is None and features is None and (path / IMAGES).is_dir():
        images = path / IMAGES
    return path / LABELS_FILE, truth, images


def _refuse_both(images: Path | None, features: Path | None) -> None:
    if images is not None and features is not None:
        raise InputError("Give either pictures or features of the items, not both.")


def _check_answers(path: Path, report: Report, duplicates: str) -> list[str]:
    """Look at a label table; give its items."""
    table = read_table(path)
    for trouble in find_missing_values(table):
        with reporting(report, path):
            raise InputError(f"{path}: {trouble}")
    full = np.flatnonzero(np.all([column.codes >= 0 for column in table.values()], axis=0))
    table = {name: column.take(full) for name, column in table.items()}
    with reporting(report, path):
        make_annotations(path, table, duplicates=duplicates)
    _warn_of_answers(path, table, report)
    return table["item"].names


def _check_pictures(folder: Path, items: Sequence[str], report: Report, progress: Progress | None) -> None:
    found = find_pictures(folder, items, report)
    for done, item in enumerate(found.shapes, 1):
        with reporting(report, found.files[item], item):
            found.lazy(item).read()
        if progress is not None:
            progress(done, len(found.shapes))
    if found.unused:
        names = shorten([path.name for path in found.unused])
        message = f"nobody labelled {len(found.unused)} of the pictures: {names}."
        report(Problem("warning", folder, None, None, message, "They are left out; `annotruth predict` labels them."))


def _warn_of_answers(path: Path, table: dict[str, Column], report: Report) -> None:
    rater, label = table["rater"], table["label"]
    if len(rater.names) == 1:
        report(only_rater(path, rater.names[0]))
    for message in told_apart(rater.names, label.names):
        report(Problem("warning", path, None, None, message, "If they are one, write it in one way."))
    if len(label.names) == 1:
        message = f"every answer is {label.names[0]}."
        report(Problem("warning", path, None, None, message, "There is nothing to tell apart."))
        return
    counts = np.bincount(rater.codes, minlength=len(rater.names))
    lowest, highest = np.full((2, len(rater.names)), [[len(label.names)], [-1]])
    np.minimum.at(lowest, rater.codes, label.codes)
    np.maximum.at(highest, rater.codes, label.codes)
    for who in np.flatnonzero(counts == 1):
        message = "the rater gave one answer only."
        advice = "It counts, but says next to nothing of how the rater errs."
        report(Problem("warning", path, None, rater.names[who], message, advice))
    for who in np.flatnonzero((counts >= MANY_ANSWERS) & (lowest == highest)):
        message = f"every one of the rater's {counts[who]} answers is {label.names[lowest[who]]}."
        report(Problem("warning", path, None, rater.names[who], message, "Did the rater look at the items?"))


@dataclass(frozen=True)
class Pictures:
    """The pictures of some items, as far as nothing is wrong with their heads.

    Attributes
    ----------
    files, shapes : file and size (channels, *spatial) by item
    rank : how many spatial axes they have
    unused : files that belong to no item
    """

    files: dict[str, Path]
    shapes: dict[str, tuple[int, ...]]
    rank: int
    unused: list[Path]

    def lazy(self, item: str) -> Lazy:
        """One item's picture (channels, *spatial), read when it is needed."""
        return Lazy(partial(_read_picture, self.files[item], self.rank, item), self.shapes[item])


def find_pictures(folder: Path, items: Sequence[str], report: Report) -> Pictures:
    """Find every item's picture, ``<item>.<ext>`` or, where names have their suffix, ``<item>``; read the heads.

    A plane has two axes, a volume three: NIfTI with three axes is a volume, anything else of three axes is a plane with
    channels.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder of pictures.")
    listed = list_files(folder / IMAGES if (folder / IMAGES).is_dir() else folder, report)
    by_name = {path.name: path for path in listed.values()} | listed
    missing = [item for item in items if item not in by_name]
    if missing:
        message = f"items of the label table without a picture, {len(missing)} of {len(items)}: {shorten(missing)}."
        advice = "Add them as <item>.<ext>, or remove their answers."
        report(Problem("fatal", folder, None, None, message, advice))
    files = {item: by_name[item] for item in items if item in by_name}
    rank, shapes = next(iter(_possible_ranks(files)), 2), {}
    for item, path in files.items():
        with reporting(report, path, item):
            shapes[item] = image_header(path, rank, place(path, item)).shape
    _compare_sizes(files, shapes, report)
    matched = set(files.values())
    return Pictures(files, shapes, rank, [path for path in listed.values() if path not in matched])


def _read_picture(path: Path, rank: int, item: str) -> np.ndarray:
    """Read one item's picture (channels, *spatial)."""
    return read_image(path, rank, place(path, item))


def _possible_ranks(files: dict[str, Path]) -> Iterator[int]:
    """How many axes the pictures may have, as far as single files tell."""
    for path in files.values():
        for rank in (3, 2) if path.name.lower().endswith((".nii", ".nii.gz")) else (2, 3):
            with suppress(InputError):
                if image_header(path, rank, str(path)).shape[rank] > 1 or rank == 2:
                    yield rank


def _compare_sizes(files: dict[str, Path], shapes: dict[str, tuple[int, ...]], report: Report) -> None:
    usual = Counter(shapes.values()).most_common(1)
    for item, shape in shapes.items():
        if shape != usual[0][0]:
            here, most = ("×".join(map(str, size)) for size in (shape, usual[0][0]))
            message = f"the picture has size {here} (channels first), most have {most}."
            lack = "resize it" if shape[1:] != usual[0][0][1:] else "save it in grey or in colour as the others are"
            advice = f"A classifier needs pictures of one size; {lack}, or remove its answers."
            report(Problem("fatal", files[item], item, None, message, advice))
