"""Import: somebody else's data set, as a case folder or a label table of ours.

The new folder is written beside its final name, and takes that name when it is whole. What was understood, and what was
left out and why, stands in its ``dataset.json``. Nothing of the source is changed.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pandas as pd

from annotruth.data.annotations import Lazy
from annotruth.data.answers import SYNONYMS
from annotruth.errors import AnnotruthError, InputError, shorten
from annotruth.io.archives import open_archive
from annotruth.io.case_files import IMAGES, LABELS_FILE, RATERS, TRUTH, TRUTH_FILE
from annotruth.io.contents import Contents, Item
from annotruth.io.files import DATASET_FILE, suffix_of
from annotruth.io.formats import EXACT_SUFFIXES
from annotruth.io.locks import only_writer
from annotruth.io.names import to_cell
from annotruth.io.problems import Problem, Progress, Refused, Report, refuse, reporting
from annotruth.io.sources import SOURCES, accept_inputs, find_source
from annotruth.io.sources.imports import ImportSource, report_irregular
from annotruth.io.tables import csv_head, find_columns
from annotruth.io.writing import atomic, refuse_used_folder, write_image_file, write_mask_file
from annotruth.validation import MISSING_PIXEL


@dataclass
class Imported:
    """What an import understood, and what it left out.

    Attributes
    ----------
    source : key of the source's kind
    items, raters, classes : how many items there are, how many of them each rater labelled, and the classes' names
    notes : what was done, in sentences
    problems : what was left out: fatal where something is wrong, warnings where it is as it should be
    """

    output: Path
    kind: str
    source: str
    items: int
    raters: dict[str, int]
    classes: tuple[str, ...]
    notes: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def skipped(self) -> list[Problem]:
        """What was left out because something is wrong with it."""
        return [problem for problem in self.problems if problem.severity == "fatal"]

    @property
    def is_whole(self) -> bool:
        """Whether all of the source was taken in, as it is there."""
        return not any(problem.severity == "fatal" or problem.incomplete for problem in self.problems)


def import_source(
    path: str | Path,
    output: str | Path,
    source: str | None = None,
    *,
    strict: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    **inputs: Any,
) -> Imported:
    """Turn a data set of another kind into a case folder, or a folder with a label table.

    Parameters
    ----------
    source : key of the kind it is, ``annotruth.io.SOURCES``; found by looking at it otherwise
    strict : raise at the first thing that is wrong, instead of leaving it out
    overwrite : replace the folder that an earlier import made
    inputs : further inputs and options of the source (``images``, …)

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     drawn = Path(folder) / "drawn" / "ann"
    ...     drawn.mkdir(parents=True)
    ...     cell = {"label": "cell", "points": [[1, 1], [6, 1], [6, 5]], "shape_type": "polygon"}
    ...     content = {"shapes": [cell], "imagePath": "a.png", "imageHeight": 8, "imageWidth": 9}
    ...     _ = (drawn / "a.json").write_text(json.dumps(content))
    ...     imported = import_source(drawn.parent, Path(folder) / "cases")
    >>> imported.source, imported.items, imported.raters, imported.classes
    ('labelme', 1, {'ann': 1}, ('background', 'cell'))
    """
    path, output = open_archive(path), Path(output)
    found = find_source(path, source)
    if not isinstance(found, ImportSource):
        if found.kind == "masks" and not (path / RATERS).is_dir():  # any folder may be a case folder that lacks all
            keys = sorted(each.key for each in SOURCES.values() if isinstance(each, ImportSource))
            raise InputError(
                f"{path}: nothing here looks like a data set that can be imported. Name the folder or file that holds "
                f"it, or say what it is with --from: {', '.join(keys)}."
            )
        if found.kind == "labels" and path.suffix.lower() == ".csv":
            _refuse_unnamed_columns(path)
        raise InputError(
            f"{path}: this is a {found.name} already, which needs no import; `annotruth check` looks at it."
        )
    with only_writer(output.absolute().parent, f".{output.name}.lock"):
        _tidy(output)
        _refuse_output(output, overwrite)
        problems: list[Problem] = []

        def report(problem: Problem) -> None:
            if strict and problem.incomplete:
                raise Refused(problem)
            if strict:
                refuse(problem)
            problems.append(problem)

        report_irregular(path, report)
        contents = found.read(path, report, **accept_inputs(found, path, inputs))
        if not contents.raters:
            raise InputError(_nothing(path, found, problems))
        contents.warn(path, report)
        with _beside(output) as folder:
            counts: Counter[str] = Counter()
            if contents.answers is not None:
                duplicates = inputs.get("duplicates", "error")
                if duplicates == "error":
                    _leave_contradictions_out(path, contents, report)
                if contents.answers.empty:
                    raise InputError(_nothing(path, found, problems))
                n_items, kind = _write_answers(folder, path, contents, duplicates, counts), "labels"
            else:
                n_items, kind = _write_cases(folder, contents, report, progress, counts), "masks"
            if not counts:
                raise InputError(_nothing(path, found, problems))
            classes = contents.classes if contents.classes is not None else contents.annotations("keep-last").classes
            imported = Imported(
                output, kind, found.key, n_items, dict(counts), classes, list(contents.notes), problems
            )  # fmt: skip
            _write_dataset(folder, path, contents, imported)
        return imported


def _refuse_unnamed_columns(path: Path) -> None:
    """Refuse a CSV file whose columns of items, raters and labels are not known by their names."""
    with suppress(OSError, UnicodeDecodeError):
        try:
            find_columns(path, csv_head(path)[0], SYNONYMS)
        except InputError as error:
            raise InputError(f"{error} Say which they are: --item, --rater and --label.") from None


def _refuse_output(output: Path, overwrite: bool) -> None:
    """Refuse a folder with files, unless an earlier import made it and it may be replaced."""
    refuse_used_folder(output, overwrite)
    if output.is_dir() and any(output.iterdir()):
        with suppress(OSError, ValueError, AttributeError):
            if "imported" in json.loads((output / DATASET_FILE).read_text(encoding="utf-8")):
                return
        raise InputError(
            f"{output}: --overwrite replaces what an earlier import made, and this is not; choose another."
        )


def _tidy(output: Path) -> None:
    """Remove what an import that was killed left beside the output; nobody else works on it now."""
    left = [each for each in output.absolute().parent.iterdir() if each.name.startswith(f".{output.name}.annotruth-")]
    for folder in sorted(left, key=lambda each: not each.name.endswith("-old")):
        if folder.name.endswith("-old") and not output.exists():
            folder.rename(output)  # it was killed while it put the new one in its place
        else:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _beside(output: Path) -> Iterator[Path]:
    """Give a new folder beside ``output`` that takes its place if all goes well, and is gone otherwise."""
    folder = output.with_name(f".{output.name}.annotruth-{uuid.uuid4().hex[:8]}")
    old = output.with_name(f"{folder.name}-old")
    try:
        folder.mkdir(parents=True)
        yield folder
        if output.exists():
            output.rename(old)
            folder.rename(output)
            shutil.rmtree(old, ignore_errors=True)
        else:
            folder.rename(output)
    except OSError as error:
        raise AnnotruthError(f"{output}: could not be written: {error.strerror or error}.") from error
    finally:
        if old.exists() and not output.exists():  # ended between the two
            old.rename(output)
        shutil.rmtree(folder, ignore_errors=True)


def _write_cases(folder: Path, contents: Contents, report: Any, progress: Progress | None, counts: Counter[str]) -> int:
    """Write masks and images, item by item; give how many items there are."""
    written = 0
    for item, masks in contents.sound_masks(report, progress):
        with _geometry(folder, item) as like, reporting(report, _file_of(item), item.name):
            if item.image is not None:
                _write_image(folder, item, like)
            name = f"{item.name}{_mask_suffix(item)}"
            for rater, mask in masks.items():
                home = folder / TRUTH if rater is None else folder / RATERS / rater
                write_mask_file(home / name, mask, like)
                if rater is not None:
                    counts[rater] += 1
            written += 1
    return written


def _file_of(item: Item) -> Path:
    files = [mask.file for mask in item.masks.values()]
    return item.image if isinstance(item.image, Path) else next(iter(files), Path(item.name))


def _mask_suffix(item: Item) -> str:
    suffix = suffix_of(item.image) if isinstance(item.image, Path) else None
    if suffix is not None and suffix.lower() in EXACT_SUFFIXES:
        return suffix
    return ".png" if len(item.shape) == 2 else ".nii.gz"


def _write_image(folder: Path, item: Item, like: Path | None) -> None:
    """Copy an image file byte by byte, or write pixels that lie in no file of ours."""
    assert item.image is not None
    if isinstance(item.image, Lazy):
        image = item.image.read()
        suffix = ".nii.gz" if len(item.shape) == 3 else ".tiff"
        write_image_file(folder / IMAGES / f"{item.name}{suffix}", image, like)
        return
    (folder / IMAGES).mkdir(exist_ok=True)
    shutil.copyfile(item.image, folder / IMAGES / f"{item.name}{suffix_of(item.image)}")


@contextmanager
def _geometry(folder: Path, item: Item) -> Iterator[Path | None]:
    """Give a file whose place in space the item's files take over: the image, or one made of its affine."""
    if item.affine is None:
        yield item.image if isinstance(item.image, Path) else None
        return
    template = folder / ".geometry.nii.gz"
    nibabel.save(nibabel.Nifti1Image(np.zeros((1, 1, 1), dtype=np.uint8), item.affine), template)
    try:
        yield template
    finally:
        template.unlink()


def _leave_contradictions_out(path: Path, contents: Contents, report: Report) -> None:
    """Leave out, and report, what a rater said of an item where that contradicts what the same rater said of it."""
    assert contents.answers is not None
    names = contents.answers[["item", "rater", "label"]].astype(str)
    different = names.drop_duplicates()
    different = different[different.duplicated(["item", "rater"], keep=False)]
    if different.empty:
        return
    for (item, rater), labels in different.groupby(["item", "rater"], sort=False)["label"]:
        message = f"the rater gave this item different labels ({shorten(list(labels))}); none is taken."
        advice = "Remove the wrong rows, or accept the last of each: --duplicates keep-last."
        report(Problem("fatal", path, str(item), str(rater), message, advice))
    pairs = pd.MultiIndex.from_frame(names[["item", "rater"]])
    is_sound = ~pairs.isin(pd.MultiIndex.from_frame(different[["item", "rater"]]))
    contents.answers = contents.answers[is_sound]
    items, raters = set(names["item"][is_sound]), set(names["rater"][is_sound])
    contents.items = [item for item in contents.items if item.name in items]
    contents.true_labels = {item: label for item, label in contents.true_labels.items() if item in items}
    contents.rater_info = {rater: about for rater, about in contents.rater_info.items() if rater in raters}


def _write_answers(folder: Path, path: Path, contents: Contents, duplicates: str, counts: Counter[str]) -> int:
    """Write the table with all its columns, the truth, and the images; give how many items there are."""
    assert contents.answers is not None
    try:
        made = contents.annotations(duplicates)  # which refuses what contradicts itself
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    answers = contents.answers
    if duplicates == "keep-last":
        answers = answers.drop_duplicates(["item", "rater"], keep="last")
    counts.update(map(str, answers["rater"]))
    try:
        answers.apply(_as_cells).to_csv(folder / LABELS_FILE, index=False)
    except UnicodeEncodeError as error:
        held = shorten([repr(error.object[error.start : error.end])])
        raise InputError(f"{path}: an answer holds {held}, which is no character. Export it anew.") from None
    if contents.true_labels:
        lines = pd.DataFrame({"item": list(contents.true_labels), "truth": list(contents.true_labels.values())})
        lines.apply(_as_cells).to_csv(folder / TRUTH_FILE, index=False)
    for item in contents.items:
        if item.image is not None:
            _write_image(folder, item, None)
    return len(made)


def _as_cells(column: pd.Series) -> pd.Series:
    """A column of text as cells of a CSV file that no spreadsheet takes for formulas; any other as it is."""
    if pd.api.types.infer_dtype(column, skipna=True) != "string":
        return column
    cells = {name: to_cell(name) for name in column.dropna().unique()}
    return column if all(name == cell for name, cell in cells.items()) else column.map(cells)


def _write_dataset(folder: Path, path: Path, contents: Contents, imported: Imported) -> None:
    groups = {item.name: item.group for item in contents.items if item.group is not None}
    content: dict[str, Any] = {"classes": list(imported.classes)}
    if contents.answers is None:
        content["missing"] = MISSING_PIXEL
    info = {name: known for name, known in contents.rater_info.items() if known and name in imported.raters}
    content |= {"raters": info} if info else {}
    content |= {"groups": groups} if groups and len(groups) == imported.items else {}
    content["imported"] = {
        "source": imported.source, "from": path.name, "items": imported.items, "raters": imported.raters,
        "names": {item.name: item.origin for item in contents.items if item.origin not in (None, item.name)},
        "notes": imported.notes, "skipped": [_as_dict(problem) for problem in imported.problems],
    }  # fmt: skip
    with atomic(folder / DATASET_FILE) as temporary:
        text = json.dumps(content, ensure_ascii=False, indent=2) + "\n"
        temporary.write_bytes(text.encode("utf-8", "backslashreplace"))  # half a character as JSON itself writes it


def _as_dict(problem: Problem) -> dict[str, str | None]:
    reason = f"{problem.message} {problem.advice}".rstrip()
    return {
        "file": problem.file.name, "item": problem.case, "rater": problem.rater, "reason": reason,
        "severity": problem.severity,
    }  # fmt: skip


def _nothing(path: Path, source: ImportSource, problems: list[Problem]) -> str:
    fatal = [problem for problem in problems if problem.severity == "fatal"]
    more = f" ({len(fatal) - 1} more: `annotruth check` lists them.)" if len(fatal) > 1 else ""
    return f"{path}: nothing in this {source.name} can be imported. {next(iter(map(str, fatal)), '')}{more}".rstrip()
