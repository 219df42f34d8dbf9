"""Every problem of every file, in one go: the rules of ``load``, gathered instead of raised, and some warnings."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from annotruth.errors import InputError, shorten
from annotruth.io.files import read_image
from annotruth.io.layout import RATERS
from annotruth.io.pixels import Pixels
from annotruth.io.problems import Problem, Report, place, reporting
from annotruth.io.survey import Progress, Survey, read_classes, survey
from annotruth.io.tables import SUFFIXES, Column, missing_values, read_table, table_annotations


def check(path: str | Path, progress: Progress | None = None) -> list[Problem]:
    """List every problem of a case folder or label table; it never stops at the first.

    Parameters
    ----------
    path : a case folder, or a label table (.csv, .parquet)
    progress : called with the number of files read and the number of all

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
            _check_table(path, problems.append)
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
    _warn_of_raters(found, report)
    _warn_of_channels(found, report)


def _warn_of_masks(found: Survey, pixels: Pixels, values: dict[Path, list[int]], report: Report) -> None:
    advice = "Keep it if the rater saw nothing; remove the file if the rater did not label the case."
    for rater, case, path in found.layout.masks:
        marks = set(values.get(path, [pixels.values[-1]])) - {pixels.missing}
        if not marks:
            report(Problem("warning", path, case, rater, "the mask is empty: no pixel is labelled.", advice))
        elif marks == {pixels.values[0]}:
            message = f"the mask is empty: every pixel is {pixels.classes[0]}."
            report(Problem("warning", path, case, rater, message, advice))
    used = {value for seen in values.values() for value in seen}
    unused = [name for name, value in zip(pixels.classes, pixels.values) if value not in used]
    if unused and used:
        message = f"no mask holds the classes {shorten(unused)}."
        report(Problem("warning", found.folder, None, None, message, "Are the classes and their values right?"))


def _warn_of_raters(found: Survey, report: Report) -> None:
    raters = found.listed.raters
    for case, path in found.listed.images.items():
        if not any(case in masks for masks in raters.values()):
            report(Problem("warning", path, case, None, "no rater labelled this image."))
    for rater, masks in raters.items():
        if not masks:
            report(Problem("warning", found.folder / RATERS / rater, None, rater, "the rater labelled nothing."))
    if len(raters) == 1:
        report(_one_rater(found.folder, next(iter(raters))))


def _warn_of_channels(found: Survey, report: Report) -> None:
    counts = Counter(found.channels.values())
    for case, channels in found.channels.items():
        usual = counts.most_common(1)[0][0]
        if channels != usual:
            message = f"the image has {channels} channels, most have {usual}."
            report(Problem("warning", found.layout.images[case], case, None, message, "No model can learn from both."))


def _check_table(path: Path, report: Report) -> None:
    table = read_table(path)
    for trouble in missing_values(table):
        with reporting(report, path):
            raise InputError(f"{path}: {trouble}")
    full = np.flatnonzero(np.all([column.codes >= 0 for column in table.values()], axis=0))
    table = {name: column.take(full) for name, column in table.items()}
    with reporting(report, path):
        table_annotations(path, table)
    _warn_of_answers(path, table, report)


def _warn_of_answers(path: Path, table: dict[str, Column], report: Report) -> None:
    if len(table["rater"].names) == 1:
        report(_one_rater(path, table["rater"].names[0]))
    if len(table["label"].names) == 1:
        message = f"every answer is {table['label'].names[0]}."
        report(Problem("warning", path, None, None, message, "There is nothing to tell apart."))


def _one_rater(path: Path, rater: str) -> Problem:
    message = f"{rater} is the only rater: nothing can tell errors from the truth."
    return Problem("warning", path, None, rater, message, "Add a second rater's labels of at least some cases.")
