"""Case folders: a mask per case and rater, with images and truth where there are any.

Files' heads are read at once, pixels when they are needed, or to find the classes where ``dataset.json`` names none.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import numpy as np

from annotruth.data.annotations import Annotations, Lazy
from annotruth.data.drawings import NEGATIVE_FOLDER
from annotruth.errors import InputError, shorten
from annotruth.io.case_files import (
    IMAGES,
    RATERS,
    TRUTH,
    Layout,
    Survey,
    by_number,
    is_parquet_table,
    is_table_folder,
    list_files,
    read_settings,
    scan,
    survey,
    survey_files,
)
from annotruth.io.dataset import Dataset
from annotruth.io.files import (
    DATASET_FILE,
    CaseMasks,
    Pixels,
    case_of,
    read_case_mask,
    read_image,
    read_mask,
    suffix_of,
)
from annotruth.io.problems import Problem, Progress, Report, only_rater, place, refuse, reporting
from annotruth.io.sources import Source, register
from annotruth.parallel import MapFunction
from annotruth.validation import MAX_MASK_CLASSES, MISSING_PIXEL


@register
class CaseFolder(Source):
    """images/<case>.<ext>, raters/<rater>/<case>.<ext>, truth/<case>.<ext>, dataset.json."""

    name = "case folder"
    description = "a folder with raters/<rater>/<case>.<ext> and, mostly, images/<case>.<ext>"
    kind = "masks"
    general = True

    def matches(self, path: Path) -> bool:
        return path.is_dir() and not is_table_folder(path) and not is_parquet_table(path)

    def is_plain(self, path: Path) -> bool:
        """Whether it is described, and there is a mask where masks belong: looking through all files takes its time."""
        if not (path / DATASET_FILE).is_file():
            return False
        folders = (entry for entry in (path / RATERS).iterdir() if entry.is_dir()) if (path / RATERS).is_dir() else ()
        return any(suffix_of(file) is not None for folder in islice(folders, 3) for file in islice(folder.iterdir(), 3))

    def load(self, path: Path, **inputs: Any) -> Annotations:
        found = survey(path, refuse)
        _look_at_channels(found, refuse)
        return _case_annotations(found, _find_classes(found))

    def load_sound(
        self, path: Path, truth: Path | None = None, progress: Progress | None = None, across: MapFunction = map
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
        everybodys = (path, path / IMAGES, path / RATERS, path / DATASET_FILE)

        def note(problem: Problem) -> None:
            if problem.case is None and problem.file in everybodys:
                refuse(problem)
            elif problem.severity == "fatal":
                problems.append(problem)

        found = survey(path, note, None if truth is None else truth.resolve())
        pixels = _find_classes(found, report=note, progress=progress, across=across)
        bad = {case for problem in problems for case in _cases_of(problem, found.listed.cases)}
        sound = found.layout.without(bad)
        if not sound.cases:
            raise InputError(nothing_sound(path, [str(problem) for problem in problems]))
        return _case_annotations(replace(found, layout=sound), pixels), problems

    def find_truth(self, truth: Path) -> Path:
        """Give a folder of true masks: the one named, or truth/ in it."""
        truth = super().find_truth(truth)
        if not truth.is_dir():
            raise InputError(f"{truth}: the known truth of a case folder is a folder of masks, <case>.<ext>.")
        return (truth / TRUTH if (truth / TRUTH).is_dir() else truth).resolve()

    def check(self, path: Path, report: Report, progress: Progress | None = None, **inputs: Any) -> None:
        found = survey(path, report)
        n_masks, images = len(found.layout.masks), found.layout.images

        def advance(done: int, _: int) -> None:
            if progress is not None:
                progress(done, n_masks + len(images))

        pixels, values = _read_classes(found, report, advance)
        for done, (case, image) in enumerate(images.items(), n_masks + 1):
            with reporting(report, image, case):
                read_image(image, found.rank, place(image, case))
            advance(done, 0)
        _warn_of_masks(found, pixels, values, report)
        _warn_of_drawings(found, pixels, values, report)
        _warn_of_raters(found, report)
        _look_at_channels(found, report)


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
        dataset = read_settings(path, layout, refuse)
    elif path.is_dir():
        layout = Layout(list_files(path, refuse), {}, {}, has_images=True)
    else:
        raise InputError(f"{path}: there is no such folder, nor an image of a known format.")
    if not layout.images:
        raise InputError(f"{path}: the folder holds no image.")
    if not layout.truth and rank is None:
        raise InputError(f"{path}: without masks, give the number of spatial axes with rank=2 or rank=3.")
    found = survey_files(path, layout, dataset, refuse, rank or 0)
    return _case_annotations(found, _find_classes(found, classes))


def _find_classes(
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
        return _read_classes(found, report, progress, across)[0]
    if not dataset.explains_pixels:
        _look_for_marks(found, dataset, report)
    return _settle_classes(dataset, ())


def _look_for_marks(found: Survey, dataset: Dataset, report: Report) -> None:
    """Read masks until one shows a proper mark, mostly the first; 255 alone would be a class nobody named."""
    seen: set[int] = set()
    for rater, case, path in found.marked:
        with reporting(report, path, case, rater):
            seen.update(_mask_values(path, place(path, case, rater)))
        if seen - {0, MISSING_PIXEL}:
            return
    _refuse_unnamed_value(dataset, seen, found.home)


def _read_classes(
    found: Survey, report: Report, progress: Progress | None = None, across: MapFunction = map
) -> tuple[Pixels, dict[Path, list[int]]]:
    """Read every mask once; give the classes, and the distinct pixel values of each mask that keeps to them."""
    masks = found.layout.masks
    by_case = [list(of_case) for _, of_case in groupby(masks, key=lambda mask: mask[1])]
    values: dict[Path, list[int]] = {}
    done = 0
    for of_case, answers in zip(by_case, across(_values_or_problems, by_case)):
        for (_, _, path), seen in zip(of_case, answers):
            if isinstance(seen, Problem):
                report(seen)
            else:
                values[path] = seen
        done += len(of_case)
        if progress is not None:
            progress(done, len(masks))
    # Without a usable dataset.json nothing can be said against a value.
    dataset = found.dataset if found.dataset is not None else Dataset(missing=MISSING_PIXEL)
    with reporting(report, found.home):
        marks = {value for _, _, path in found.marked for value in values.get(path, ())}
        _refuse_unnamed_value(dataset, marks, found.home)
    pixels = _settle_classes(dataset, {value for seen in values.values() for value in seen})
    sound = {}
    for rater, case, path in masks:
        if path in values:
            with reporting(report, path, case, rater):
                pixels.class_numbers(np.array(values[path]), place(path, case, rater))
                sound[path] = values[path]
    return pixels, sound


def _settle_classes(dataset: Dataset, seen: Collection[int]) -> Pixels:
    """Take the classes from ``dataset.json``, or from the values seen in all masks: 0 to the highest, at least two."""
    if dataset.class_names is not None and dataset.class_values is not None:
        negative = tuple((dataset.class_names.index(name), value) for name, value in dataset.negative.items())
        return Pixels(dataset.class_names, dataset.class_values, dataset.missing, negative)
    highest = max((value for value in seen if value < MAX_MASK_CLASSES and value != dataset.missing), default=0)
    numbers = tuple(range(max(highest + 1, 2)))
    return Pixels(tuple(map(str, numbers)), numbers, dataset.missing)


def _refuse_unnamed_value(dataset: Dataset, seen: Collection[int], folder: Path) -> None:
    """Refuse masks whose one mark is no class number: binary masks stored as 0 and 255, mostly.

    Read as they stand, 255 would mean "not labelled", and nobody would ever have marked anything.
    """
    marks = sorted(set(seen) - {0})
    if dataset.explains_pixels or len(marks) != 1 or marks[0] < 2:
        return
    mark = marks[0]
    if dataset.classes is not None and mark != MISSING_PIXEL:
        return
    names = dataset.class_names if dataset.class_names and len(dataset.class_names) == 2 else ("background", "marked")
    line = json.dumps({"classes": {names[0]: 0, names[1]: mark}}, ensure_ascii=False)
    if mark == MISSING_PIXEL:
        trouble = (
            f"the masks hold only 0 and {mark}, and {mark} means 'not labelled' unless {DATASET_FILE} says otherwise"
        )
        otherwise = f' If {mark} does mean not labelled: {{"missing": {mark}}}.'
    else:
        trouble, otherwise = f"the masks hold only 0 and {mark}, but classes count 0, 1, 2 …", ""
    raise InputError(
        f"{folder}: {trouble}. If {mark} marks a class, write into {DATASET_FILE}: {line}.{otherwise} "
        "`annotruth import --from mask-folder` makes a new folder of such masks."
    )


def _mask_values(path: Path, where: str) -> list[int]:
    """Give the distinct pixel values of a mask."""
    return [int(value) for value in np.unique(read_mask(path, where))]


def _values_or_problems(masks: Sequence[tuple[str | None, str, Path]]) -> list[list[int] | Problem]:
    """Give, for each mask of a case, its distinct pixel values or what is wrong with it."""
    answers: list[list[int] | Problem] = []
    for rater, case, path in masks:
        with reporting(answers.append, path, case, rater):
            answers.append(_mask_values(path, place(path, case, rater)))
    return answers


def _case_annotations(found: Survey, pixels: Pixels) -> Annotations:
    """Make annotations of the sound files of a folder."""
    layout, dataset = found.layout, found.dataset or Dataset()
    cases, raters = layout.cases, tuple(sorted(layout.raters, key=by_number))
    masks, negatives, images, truth, sources = [], [], [], [], []
    for case in cases:
        shape = found.shapes[case]
        files = tuple(layout.raters[rater].get(case) for rater in raters)
        negative_files = tuple(layout.negatives.get(rater, {}).get(case) for rater in raters)
        case_masks = CaseMasks(case, raters, files, negative_files, shape, pixels)
        masks.append(Lazy(case_masks.read_positive if raters else partial(_no_masks, shape), (len(raters), *shape)))
        negatives.append(Lazy(case_masks.read_negative, (len(raters), *shape)))
        truth.append(Lazy(partial(read_case_mask, layout.truth.get(case), None, case, shape, pixels), shape))
        if layout.has_images:
            read = partial(_read_case_image, layout.images[case], case, found.rank)
            images.append(Lazy(read, (found.channels[case], *shape)))
        own = (file for file in (*files, *negative_files) if file is not None)
        sources.append(layout.images[case] if layout.has_images else next(own))
    return Annotations(
        kind="masks", items=cases, raters=raters, classes=pixels.classes, masks=masks,
        negatives=negatives if layout.negatives or pixels.negative else None,
        images=images if layout.has_images else None,
        truth=truth if layout.truth else None,
        groups=[dataset.groups[case] for case in cases] if dataset.groups else None,
        rater_info=dataset.raters if raters else None,
        sources=sources, pixel_values=pixels.by_class,
        spacing=[found.spacings[case] for case in cases] if any(map(found.spacings.get, cases)) else None,
    )  # fmt: skip


def _no_masks(shape: tuple[int, ...]) -> np.ndarray:
    """The masks of nobody."""
    return np.empty((0, *shape), dtype=np.uint8)


def _read_case_image(path: Path, case: str, rank: int) -> np.ndarray:
    """Read one image (channels, *spatial)."""
    return read_image(path, rank, place(path, case))


def _cases_of(problem: Problem, cases: Sequence[str]) -> list[str]:
    """Whose problem it is; a file of unknown format is that of the case it is named after, if of any."""
    if problem.case is not None:
        return [problem.case]
    return sorted((case for case in cases if problem.file.name.startswith(f"{case}.")), key=len)[-1:]


def _warn_of_masks(found: Survey, pixels: Pixels, values: dict[Path, list[int]], report: Report) -> None:
    advice = "Keep it if the rater saw nothing; remove the file if the rater did not label the case."
    negative_files = {path for files in found.layout.negatives.values() for path in files.values()}
    for rater, case, path in (mask for mask in found.layout.masks if mask[2] not in negative_files):
        marks = set(values.get(path, [pixels.values[-1]])) - {pixels.missing}
        if not marks:
            report(Problem("warning", path, case, rater, "the mask is empty: no pixel is labelled.", advice))
        elif marks == {pixels.values[0]} and pixels.missing not in values.get(path, ()):
            message = f"the mask is empty: every pixel is {pixels.classes[0]}."
            report(Problem("warning", path, case, rater, message, advice))
    used = {value for path, seen in values.items() if path not in negative_files for value in seen}
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
                drawn = CaseMasks(case, (rater,), (positive,), (negative,), found.shapes[case], pixels)
                count = drawn.read_both()[2]
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
        report(only_rater(found.folder, next(iter(raters))))


def _look_at_channels(found: Survey, report: Report) -> None:
    """Report images of other channels than most; who needs no images (``load_sound``) does not ask."""
    counts = Counter(found.channels.values())
    for case, channels in found.channels.items():
        usual = counts.most_common(1)[0][0]
        if channels != usual:
            message = f"the image has {channels} channels, most have {usual}."
            advice = "No model can learn from both: save it in grey or in colour as the others are, or remove the case."
            report(Problem("fatal", found.layout.images[case], case, None, message, advice))
