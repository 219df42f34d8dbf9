"""Which files a case folder holds, and whose they are."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from annotruth.data.drawings import NEGATIVE_FOLDER
from annotruth.errors import InputError
from annotruth.io.formats import EXACT_SUFFIXES, case_of, suffix_of
from annotruth.io.problems import Problem, Report, reporting

IMAGES, RATERS, TRUTH = "images", "raters", "truth"


@dataclass(frozen=True)
class Layout:
    """The files of a case folder.

    Attributes
    ----------
    images, truth : file by case
    raters : by rater, file by case; a case that is not there was not labelled
    has_images : whether there is an ``images`` folder
    negatives : by rater, file by case of the drawings that say what is not there
    """

    images: dict[str, Path]
    raters: dict[str, dict[str, Path]]
    truth: dict[str, Path]
    has_images: bool
    negatives: dict[str, dict[str, Path]] = field(default_factory=dict)

    @property
    def cases(self) -> list[str]:
        drawn = [*self.raters.values(), *self.negatives.values()]
        return sorted(self.images.keys() | {case for masks in drawn for case in masks}, key=by_number)

    @property
    def owners(self) -> list[tuple[str | None, dict[str, Path]]]:
        """Everybody's masks, under the names of their folders; the truth is nobody's."""
        negatives = [(f"{rater}{NEGATIVE_FOLDER}", files) for rater, files in self.negatives.items()]
        return [*self.raters.items(), *negatives, (None, self.truth)]

    @property
    def masks(self) -> list[tuple[str | None, str, Path]]:
        """All masks as (rater, case, file), by case; the truth is nobody's."""
        owners = self.owners
        return [(rater, case, files[case]) for case in self.cases for rater, files in owners if case in files]

    def only(self, paths: Collection[Path]) -> Layout:
        """The same with some of the files."""
        return self._keep(lambda case, path: path in paths)

    def without(self, cases: Collection[str]) -> Layout:
        """The same without some of the cases."""
        return self._keep(lambda case, path: case not in cases)

    def _keep(self, wanted: Callable[[str, Path], bool]) -> Layout:
        def kept(files: dict[str, Path]) -> dict[str, Path]:
            return {case: path for case, path in files.items() if wanted(case, path)}

        raters, negatives = (
            {rater: kept(masks) for rater, masks in drawn.items()} for drawn in (self.raters, self.negatives)
        )
        return Layout(kept(self.images), raters, kept(self.truth), self.has_images, negatives)


def scan(folder: Path, report: Report, with_raters: bool = True, truth: Path | None = Path(TRUTH)) -> Layout:
    """List a case folder's files, reporting what does not belong; only what does is in the answer.

    ``truth`` is where true masks lie, inside the folder or, as an absolute path, elsewhere; None leaves them out.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder.")
    has_images = (folder / IMAGES).is_dir()
    raters, negatives = _apart(_list_raters(folder, report) if with_raters else {})
    found = Layout(
        images=list_files(folder / IMAGES, report) if has_images else {},
        raters=raters,
        truth=list_files(folder / truth, report) if truth is not None and (folder / truth).is_dir() else {},
        has_images=has_images,
        negatives=negatives,
    )
    if has_images and not found.images:
        report(Problem("fatal", folder / IMAGES, None, None, "the folder holds no image.", "Fill it, or remove it."))
    _drop_orphans(found, report)
    return found


def list_files(folder: Path, report: Report, rater: str | None = None) -> dict[str, Path]:
    """List a folder's files by case. Hidden files and those of operating systems do not count."""
    files: dict[str, Path] = {}
    for path in filter(_visible, sorted(folder.iterdir())):
        if path.is_dir() or suffix_of(path) is None:
            advice = f"Convert it to one of {', '.join(EXACT_SUFFIXES)}, or move it elsewhere."
            report(Problem("fatal", path, None, rater, "not a file of a known format.", advice))
            continue
        case = case_of(path)
        with reporting(report, path, case, rater):
            if case in files:
                raise InputError(f"the case is there twice, also as {files[case].name}. Remove one of the two.")
            files[case] = path
    return files


def _list_raters(folder: Path, report: Report) -> dict[str, dict[str, Path]]:
    home = folder / RATERS
    entries = sorted(filter(_visible, home.iterdir())) if home.is_dir() else []
    for stray in (entry for entry in entries if not entry.is_dir()):
        advice = f"Put it into {RATERS}/<rater>/."
        report(Problem("fatal", stray, None, None, "the file lies in no rater's folder.", advice))
    raters = {entry.name: list_files(entry, report, entry.name) for entry in entries if entry.is_dir()}
    if not any(raters.values()):
        lack = f"there is no {RATERS}/ folder" if not home.is_dir() else "there is no rater's folder"
        message = f"{lack if not raters else 'no rater labelled anything'}: there is not a single mask."
        advice = f"A case folder holds {RATERS}/<rater>/<case>.<ext> and, mostly, {IMAGES}/<case>.<ext>."
        report(Problem("fatal", home if home.is_dir() else folder, None, None, message, advice))
    return raters


def _apart(folders: dict[str, dict[str, Path]]) -> tuple[dict[str, dict[str, Path]], dict[str, dict[str, Path]]]:
    """Positive and negative drawings by rater; somebody who drew only negative ones is a rater, too."""
    negatives = {
        name.removesuffix(NEGATIVE_FOLDER): files for name, files in folders.items() if name.endswith(NEGATIVE_FOLDER)
    }
    positives = {name: files for name, files in folders.items() if not name.endswith(NEGATIVE_FOLDER)}
    return positives | {name: {} for name in negatives if name not in positives}, negatives


def _drop_orphans(found: Layout, report: Report) -> None:
    """Report and forget masks of cases without an image, or, where there are no images, truth nobody labelled."""
    cases = found.images.keys() if found.has_images else set(found.cases)
    lack = f"{IMAGES}/ holds no image of that name" if found.has_images else "no rater labelled the case"
    for rater, masks in found.owners:
        for case in sorted(masks.keys() - cases):
            advice = "Remove or rename the mask, or add what is missing."
            report(Problem("fatal", masks.pop(case), case, rater, f"there is a mask, but {lack}.", advice))


def by_number(name: str) -> tuple[list[str | int], str]:
    """Sort key that puts case_2 before case_10.

    Examples
    --------
    >>> sorted(["case_10", "case_2", "b"], key=by_number)
    ['b', 'case_2', 'case_10']
    """
    parts: list[str | int] = list(re.split("([0-9]+)", name))
    parts[1::2] = map(int, parts[1::2])
    return parts, name


def _visible(path: Path) -> bool:
    return not path.name.startswith(".") and path.name.lower() not in ("thumbs.db", "desktop.ini")
