"""Every problem of every file, in one go: the rules of ``load``, gathered instead of raised, and some warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from annotruth.data.drawings import NEGATIVE_FOLDER
from annotruth.errors import InputError, shorten
from annotruth.io.case_masks import Drawn
from annotruth.io.features import read_features
from annotruth.io.files import read_image
from annotruth.io.layout import RATERS
from annotruth.io.pictures import find_pictures
from annotruth.io.pixels import Pixels
from annotruth.io.problems import Problem, Report, place, reporting
from annotruth.io.survey import Progress, Survey, read_classes, survey
from annotruth.io.tables import SUFFIXES, Column, missing_values, read_table, table_annotations

MANY_ANSWERS = 5
"""Answers from which it is odd that they are all the same."""


def check(
    path: str | Path,
    progress: Progress | None = None,
    *,
    images: str | Path | None = None,
    features: str | Path | None = None,
    duplicates: str = "error",
) -> list[Problem]:
    """List every problem of a case folder or label table; it never stops at the first.

    Parameters
    ----------
    path : a case folder, or a label table (.csv, .parquet)
    progress : called with the number of files read and the number of all
    images, features, duplicates : for a label table, as :func:`annotruth.load` takes them

    Returns
    -------
    Problems, fatal ones first. ``load`` refuses data with a fatal problem, and takes all others.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [problem.message for problem in check(folder)]
    ['there is no raters/ folder: there is not a single mask.']
    """
    path = Path(path)
    problems: list[Problem] = []
    with reporting(problems.append, path):
        if path.is_dir():
            _check_cases(path, problems.append, progress)
        elif path.is_file() and path.suffix.lower() in SUFFIXES:
            items = _check_table(path, problems.append, duplicates)
            if images is not None:
                with reporting(problems.append, Path(images)):
                    _check_pictures(Path(images), items, problems.append, progress)
            if features is not None:
                with reporting(problems.append, Path(features)):
                    read_features(Path(features)).of(items, Path(features))
        else:
            raise InputError(nothing_to_load(path))
    return sorted(problems, key=lambda problem: problem.severity != "fatal")


def nothing_to_load(path: Path) -> str:
    """Say why a path is no data set."""
    if not path.exists():
        return f"{path}: there is no such file or folder."
    return f"{path}: neither a case folder nor a label table ({', '.join(SUFFIXES)})."


def _check_cases(folder: Path, report: Report, progress: Progress | None) -> None:
    found = survey(folder, report)
    n_masks, images = len(found.layout.masks), found.layout.images

    def advance(done: int, _: int) -> None:
        if progress is not None:
            progress(done, n_masks + len(images))

    pixels, values = read_classes(found, report, advance)
    for done, (case, path) in enumerate(images.items(), n_masks + 1):
        with reporting(report, path, case):
            read_image(path, found.rank, place(path, case))
        advance(done, 0)
    _warn_of_masks(found, pixels, values, report)
    _warn_of_drawings(found, pixels, values, report)
    _warn_of_raters(found, report)
    _warn_of_channels(found, report)


def _warn_of_masks(found: Survey, pixels: Pixels, values: dict[Path, list[int]], report: Report) -> None:
    advice = "Keep it if the rater saw nothing; remove the file if the rater did not label the case."
    said_not = {path for files in found.layout.negatives.values() for path in files.values()}
    for rater, case, path in (mask for mask in found.layout.masks if mask[2] not in said_not):
        marks = set(values.get(path, [pixels.values[-1]])) - {pixels.missing}
        if not marks:
            report(Problem("warning", path, case, rater, "the mask is empty: no pixel is labelled.", advice))
        elif marks == {pixels.values[0]} and pixels.missing not in values.get(path, ()):
            message = f"the mask is empty: every pixel is {pixels.classes[0]}."
            report(Problem("warning", path, case, rater, message, advice))
    used = {value for path, seen in values.items() if path not in said_not for value in seen}
    unused = [name for name, value in zip(pixels.classes, pixels.values) if value not in used]
    if unused and used:
        message = f"no mask holds the classes {shorten(unused)}."
        report(Problem("warning", found.folder, None, None, message, "Are the classes and their values right?"))


def _warn_of_drawings(found: Survey, pixels: Pixels, values: dict[Path, list[int]], report: Report) -> None:
    """Warn of drawings that speak against themselves, and of negative ones that speak everywhere, or nowhere."""
    layout = found.layout
    for rater, files in layout.negatives.items():
        for case, path in files.items():
            name, seen = f"{rater}{NEGATIVE_FOLDER}", set(values.get(path, ()))
            if seen == {pixels.missing}:
                report(Problem("warning", path, case, name, "the negative drawing is empty.", "Remove the file."))
            elif seen and pixels.missing not in seen:
                message = "the negative drawing says of every pixel that it is not some class."
                advice = f"Write {pixels.missing} where nothing was drawn." if pixels.missing is not None else ""
                report(Problem("warning", path, case, name, message, advice))
    for rater in layout.raters:
        for case in layout.cases:
            positive, negative = layout.raters[rater].get(case), layout.negatives.get(rater, {}).get(case)
            if positive in values and negative in values:
                drawn = Drawn(case, (rater,), (positive,), (negative,), found.shapes[case], pixels)
                count = drawn.both()[2]
                if count:
                    message = f"{count} pixels are drawn both as a class and as not that class; they are ignored."
                    report(Problem("warning", negative, case, rater, message, "Correct the one or the other."))


def _warn_of_raters(found: Survey, report: Report) -> None:
    raters, negatives = found.listed.raters, found.listed.negatives
    for case, path in found.listed.images.items():
        if not any(case in masks for masks in (*raters.values(), *negatives.values())):
            report(Problem("warning", path, case, None, "no rater labelled this image."))
    for rater, masks in raters.items():
        if not masks and not negatives.get(rater):
            report(Problem("warning", found.folder / RATERS / rater, None, rater, "the rater labelled nothing."))
    if len(raters) == 1 and not negatives:
        report(_one_rater(found.folder, next(iter(raters))))


def _warn_of_channels(found: Survey, report: Report) -> None:
    counts = Counter(found.channels.values())
    for case, channels in found.channels.items():
        usual = counts.most_common(1)[0][0]
        if channels != usual:
            message = f"the image has {channels} channels, most have {usual}."
            report(Problem("warning", found.layout.images[case], case, None, message, "No model can learn from both."))


def _check_table(path: Path, report: Report, duplicates: str) -> list[str]:
    """Look at a label table; give its items."""
    table = read_table(path)
    for trouble in missing_values(table):
        with reporting(report, path):
            raise InputError(f"{path}: {trouble}")
    full = np.flatnonzero(np.all([column.codes >= 0 for column in table.values()], axis=0))
    table = {name: column.take(full) for name, column in table.items()}
    with reporting(report, path):
        table_annotations(path, table, duplicates=duplicates)
    _warn_of_answers(path, table, report)
    return table["item"].names


def _check_pictures(folder: Path, items: Sequence[str], report: Report, progress: Progress | None) -> None:
    found = find_pictures(folder, items, report)
    for done, item in enumerate(found.shapes, 1):
        with reporting(report, found.files[item], item):
            found.read(item)
        if progress is not None:
            progress(done, len(found.shapes))
    if found.unused:
        names = shorten([path.name for path in found.unused])
        message = f"nobody labelled {len(found.unused)} of the pictures: {names}."
        report(Problem("warning", folder, None, None, message, "They are left out; `annotruth predict` labels them."))


def _warn_of_answers(path: Path, table: dict[str, Column], report: Report) -> None:
    rater, label = table["rater"], table["label"]
    if len(rater.names) == 1:
        report(_one_rater(path, rater.names[0]))
    if len(label.names) == 1:
        message = f"every answer is {label.names[0]}."
        report(Problem("warning", path, None, None, message, "There is nothing to tell apart."))
        return
    given = np.bincount(rater.codes, minlength=len(rater.names))
    lowest, highest = np.full((2, len(rater.names)), [[len(label.names)], [-1]])
    np.minimum.at(lowest, rater.codes, label.codes)
    np.maximum.at(highest, rater.codes, label.codes)
    for who in np.flatnonzero(given == 1):
        message = "the rater gave one answer only."
        advice = "It counts, but says next to nothing of how the rater errs."
        report(Problem("warning", path, None, rater.names[who], message, advice))
    for who in np.flatnonzero((given >= MANY_ANSWERS) & (lowest == highest)):
        message = f"every one of the rater's {given[who]} answers is {label.names[lowest[who]]}."
        report(Problem("warning", path, None, rater.names[who], message, "Did the rater look at the items?"))


def _one_rater(path: Path, rater: str) -> Problem:
    message = f"{rater} is the only rater: nothing can tell errors from the truth."
    return Problem("warning", path, None, rater, message, "Add a second rater's labels of at least some cases.")
