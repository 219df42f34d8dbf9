"""Case folders as Annotations. Files' heads are read at once, pixels when they are needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.data.lazy import Lazy
from annotruth.errors import InputError
from annotruth.io.case_masks import Drawn, case_mask
from annotruth.io.dataset import FILE_NAME, Dataset
from annotruth.io.files import read_image
from annotruth.io.formats import case_of, suffix_of
from annotruth.io.layout import IMAGES, RATERS, Layout, by_number, list_files, scan
from annotruth.io.pixels import Pixels, refuse_unnamed_value, settle_classes
from annotruth.io.problems import Problem, Report, place, refuse, reporting
from annotruth.io.survey import (
    Progress,
    Survey,
    mask_values,
    read_classes,
    settings,
    survey,
    survey_files,
)
from annotruth.parallel import MapFunction
from annotruth.validation import MISSING_PIXEL


def load_cases(folder: Path) -> Annotations:
    """Load a case folder: images/<case>.<ext>, raters/<rater>/<case>.<ext>, truth/<case>.<ext>, dataset.json."""
    found = survey(folder, refuse)
    return _annotations(found, _classes(found))


def load_sound_cases(
    folder: Path, truth: Path | None = None, progress: Progress | None = None, across: MapFunction = map
) -> tuple[Annotations, list[Problem]]:
    """Load the cases in which nothing is wrong, setting aside the others.

    What is wrong with a file sets its case aside; what is wrong with the folder as a whole is raised.

    Parameters
    ----------
    truth : a folder of true masks, ``<case>.<ext>``; the case folder's own count only if they are named here
    progress : told of the masks read, where that is needed to find the classes
    across : how to spread this reading, over workers say

    Returns
    -------
    The sound cases, and what is wrong with the others.
    """
    problems: list[Problem] = []
    everybodys = (folder, folder / IMAGES, folder / RATERS, folder / FILE_NAME)

    def note(problem: Problem) -> None:
        if problem.case is None and problem.file in everybodys:
            refuse(problem)
        elif problem.severity == "fatal":
            problems.append(problem)

    found = survey(folder, note, None if truth is None else truth.resolve())
    pixels = _classes(found, report=note, progress=progress, across=across)
    bad = {case for problem in problems for case in _cases_of(problem, found.listed.cases)}
    sound = found.layout.without(bad)
    if not sound.cases:
        raise InputError(nothing_sound(folder, [str(problem) for problem in problems]))
    return _annotations(replace(found, layout=sound), pixels), problems


def nothing_sound(folder: Path, reasons: Sequence[str]) -> str:
    """Say that every case was set aside, and why the first was."""
    more = f" ({len(reasons) - 1} more: `annotruth check` lists them.)" if len(reasons) > 1 else ""
    return f"{folder}: something is wrong with every case. {next(iter(reasons), '')}{more}"


def load_images(path: str | Path, rank: int | None = None, classes: Sequence[str] = ()) -> Annotations:
    """Load images without raters: to label them with a model, or to simulate raters.

    Parameters
    ----------
    path : a folder of images, one image, or a folder with images/ and optionally truth/ and dataset.json
    rank : how many spatial axes the images have; true masks, where there are any, tell it themselves
    classes : names, where neither true masks nor dataset.json tell them

    Returns
    -------
    Annotations without raters; write_mask and write_probabilities work with them.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder) / "a.npy", np.zeros((3, 16, 16)))
    ...     load_images(folder, rank=2).item_image(0).shape
    (3, 16, 16)
    """
    path = Path(path)
    dataset: Dataset | None = Dataset()
    if path.is_file() and suffix_of(path) is not None:
        layout = Layout({case_of(path): path}, {}, {}, has_images=True)
    elif (path / IMAGES).is_dir():
        layout = scan(path, refuse, with_raters=False)
        dataset = settings(path, layout, refuse)
    elif path.is_dir():
        layout = Layout(list_files(path, refuse), {}, {}, has_images=True)
    else:
        raise InputError(f"{path}: there is no such folder, nor an image of a known format.")
    if not layout.images:
        raise InputError(f"{path}: the folder holds no image.")
    if not layout.truth and rank is None:
        raise InputError(f"{path}: without masks, give the number of spatial axes with rank=2 or rank=3.")
    found = survey_files(path, layout, dataset, refuse, rank or 0)
    return _annotations(found, _classes(found, classes))


def _cases_of(problem: Problem, cases: Sequence[str]) -> list[str]:
    """Whose problem it is; a file of unknown format is that of the case it is named after, if of any."""
    if problem.case is not None:
        return [problem.case]
    return sorted((case for case in cases if problem.file.name.startswith(f"{case}.")), key=len)[-1:]


def _classes(
    found: Survey,
    names: Sequence[str] = (),
    report: Report = refuse,
    progress: Progress | None = None,
    across: MapFunction = map,
) -> Pixels:
    """Settle the classes, reading masks only as far as that needs it."""
    dataset = found.dataset or Dataset()
    if not found.layout.masks and dataset.classes is None:
        return Pixels(tuple(names), tuple(range(len(names))), dataset.missing)
    if dataset.classes is None:
        return read_classes(found, report, progress, across)[0]
    if not dataset.explains_pixels:
        _look_for_marks(found, dataset, report)
    return settle_classes(dataset, ())


def _look_for_marks(found: Survey, dataset: Dataset, report: Report) -> None:
    """Read masks until one shows a proper mark, mostly the first; 255 alone would be a class nobody named."""
    seen: set[int] = set()
    for rater, case, path in found.marked:
        with reporting(report, path, case, rater):
            seen.update(mask_values(path, place(path, case, rater)))
        if seen - {0, MISSING_PIXEL}:
            return
    refuse_unnamed_value(dataset, seen, found.home)


def _annotations(found: Survey, pixels: Pixels) -> Annotations:
    layout, dataset = found.layout, found.dataset or Dataset()
    cases, raters = layout.cases, tuple(sorted(layout.raters, key=by_number))
    masks, negatives, images, truth, sources = [], [], [], [], []
    for case in cases:
        shape = found.shapes[case]
        files = tuple(layout.raters[rater].get(case) for rater in raters)
        said_not = tuple(layout.negatives.get(rater, {}).get(case) for rater in raters)
        drawn = Drawn(case, raters, files, said_not, shape, pixels)
        masks.append(Lazy(drawn.positive if raters else partial(_nothing, shape), (len(raters), *shape)))
        negatives.append(Lazy(drawn.negative, (len(raters), *shape)))
        truth.append(Lazy(partial(case_mask, layout.truth.get(case), None, case, shape, pixels), shape))
        if layout.has_images:
            read = partial(_case_image, layout.images[case], case, found.rank)
            images.append(Lazy(read, (found.channels[case], *shape)))
        own = (file for file in (*files, *said_not) if file is not None)
        sources.append(layout.images[case] if layout.has_images else next(own))
    return Annotations(
        kind="masks", items=cases, raters=raters, classes=pixels.classes, masks=masks,
        negatives=negatives if layout.negatives or pixels.negative else None,
        images=images if layout.has_images else None,
        truth=truth if layout.truth else None,
        groups=[dataset.groups[case] for case in cases] if dataset.groups else None,
        rater_info=dataset.raters if raters else None,
        sources=sources, pixel_values=pixels.by_class,
    )  # fmt: skip


def _nothing(shape: tuple[int, ...]) -> np.ndarray:
    """The masks of nobody."""
    return np.empty((0, *shape), dtype=np.uint8)


def _case_image(path: Path, case: str, rank: int) -> np.ndarray:
    """Read one image (channels, *spatial)."""
    return read_image(path, rank, place(path, case))
