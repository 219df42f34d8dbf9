"""QUBIQ: a folder per case with an image and, for each task and rater, a binary mask (NIfTI)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from annotruth.errors import InputError, shorten
from annotruth.io.contents import Contents, name_items
from annotruth.io.layouts import Case, Drawing, binary_rule, find_named, has_name, make_items, one_root
from annotruth.io.masks.planes import read_planes
from annotruth.io.masks.reading import Part, find_rank
from annotruth.io.problems import Problem, Report, reporting
from annotruth.io.sources import register
from annotruth.io.sources.imports import ImportSource

IMAGE = r"image\.nii(\.gz)?"
MASK = r"task(\d+)_seg(\d+)\.nii(\.gz)?"
DATA_SETS = ("kidney", "brain-growth", "pancreas", "pancreatic-lesion")
"""With one task, which is then called after them."""
SPLITS = ("training", "validation", "testing", "test", "train", "val")


@register
class Qubiq(ImportSource):
    """<data set>/Training/caseNN/{image.nii.gz, taskTT_segRR.nii.gz}."""

    name = "QUBIQ folder"
    key = "qubiq"
    description = "QUBIQ's caseNN/image.nii.gz with taskTT_segRR.nii.gz, of one of its data sets"
    kind = "masks"
    holds = ("image", "mask", "3D")
    identity = "the number of the segmentation (segRR)"
    options = {"task": "one task only, by its number; otherwise each is a class"}  # noqa: RUF012

    def matches(self, path: Path) -> bool:
        return has_name(path, MASK)

    def read(self, path: Path, report: Report, task: int | None = None, **_: Any) -> Contents:
        found: dict[Path, dict[str, dict[int, Path]]] = {}
        for file, match in find_named(path, MASK).items():
            found.setdefault(file.parent, {}).setdefault(f"rater_{int(match[2])}", {})[int(match[1])] = file
        roots = [_data_set(folder, path) for folder in found]
        one_root(path, roots, "data sets of QUBIQ")
        tasks = sorted({number for raters in found.values() for files in raters.values() for number in files})
        if task is not None and int(task) not in tasks:
            raise InputError(f"{path}: there is no task {task}, only {shorten(list(map(str, tasks)))}. Correct it.")
        wanted = tasks if task is None else [int(task)]
        wanted, notes = _order(found, wanted, report)
        known = roots[0].name.lower() in DATA_SETS and len(tasks) == 1
        names = [roots[0].name] if known else [f"task{number:02d}" for number in wanted]
        return Contents(
            ("background", *names),
            _items(path, found, wanted, report),
            notes=[*notes, "Raters are told apart by number."],
        )


def _data_set(folder: Path, path: Path) -> Path:
    """The folder of a data set that a case's folder belongs to."""
    home = folder.parent if folder != path else folder
    while home != path and home.name.lower() in SPLITS:
        home = home.parent
    return home


def _order(
    found: dict[Path, dict[str, dict[int, Path]]], tasks: list[int], report: Report
) -> tuple[list[int], list[str]]:
    """Tasks with the largest first: where structures lie in each other, the smaller one lies on top."""
    if len(tasks) < 2:
        return tasks, []
    sizes = dict.fromkeys(tasks, 0)
    for raters in found.values():
        for files in raters.values():
            for number in (number for number in tasks if number in files):
                try:
                    sizes[number] += int((read_planes(files[number], str(files[number])).pixels > 0).sum())
                except InputError:
                    continue  # said when the mask is read
    ordered = sorted(tasks, key=lambda number: (-sizes[number], number))
    shown = ", ".join(f"task{number:02d}" for number in ordered)
    return ordered, [f"Each task is a class; where several mark a pixel, the last of {shown} counts."]


def _items(path: Path, found: dict[Path, dict[str, dict[int, Path]]], tasks: list[int], report: Report) -> list[Any]:
    cases = []
    names = name_items({folder: folder.relative_to(path).as_posix() for folder in found})
    rule = binary_rule("marked", threshold=0.5)
    for folder, raters in found.items():
        case = Case(names[folder], tuple(find_named(folder, IMAGE))[:1])
        for rater, files in raters.items():
            parts = tuple(Part(files[number], place) for place, number in enumerate(tasks, 1) if number in files)
            lacking = [f"task{number:02d}" for number in tasks if number not in files]
            if lacking:
                message = f"the rater has no mask of {', '.join(lacking)}; the mask is left out."
                report(Problem("warning", folder, case.name, rater, message))
            elif parts:
                case.masks[rater] = Drawing(parts, rule)
        if case.masks:
            cases.append(case)
    ranks = {}
    for case in cases:
        first = next(iter(case.masks.values())).parts[0].file  # type: ignore[union-attr]
        with reporting(report, first, case.name):
            ranks[case.name] = find_rank(None, first)
    by_rank = sorted(set(ranks.values()))
    return [
        item
        for rank in by_rank
        for item in make_items([case for case in cases if ranks.get(case.name) == rank], rank, report)
    ]
