"""What a case folder holds: which files are whose, how large they are, and whether they fit together.

Only the heads of files are read here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from annotruth.data.annotations import Spacing
from annotruth.data.drawings import NEGATIVE_FOLDER
from annotruth.errors import InputError, shorten
from annotruth.io.dataset import Dataset, read_dataset
from annotruth.io.files import (
    DATASET_FILE,
    case_of,
    image_header,
    mask_header,
    same_place,
    suffix_of,
)
from annotruth.io.formats import EXACT_SUFFIXES
from annotruth.io.formats.header import Header
from annotruth.io.names import file_name, refuse_unwritable
from annotruth.io.problems import Problem, Report, place, reporting
from annotruth.io.reading import refuse_irregular

IMAGES, RATERS, TRUTH = "images", "raters", "truth"
LABELS_FILE, TRUTH_FILE = "labels.csv", "truth.csv"
"""In a folder that an import made of a label table, beside images/."""


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
    spacings : millimetres from pixel to pixel by case; None where no file of the case tells
    channels : number of channels by case, where there are images
    """

    folder: Path
    listed: Layout
    layout: Layout
    dataset: Dataset | None
    rank: int
    shapes: dict[str, tuple[int, ...]]
    channels: dict[str, int]
    spacings: dict[str, Spacing | None]

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
    return survey_files(folder, layout, read_settings(folder, layout, report), report)


def read_settings(folder: Path, layout: Layout, report: Report) -> Dataset | None:
    """Read ``dataset.json`` and see that it speaks of this folder's raters and cases."""
    path = folder / DATASET_FILE
    dataset = None
    with reporting(report, path):
        dataset = read_dataset(folder)
        if layout.raters:
            _refuse_strangers(dataset.raters, layout.raters, "raters", "raters", path)
    with reporting(report, path):
        if dataset is not None and dataset.groups:
            _refuse_strangers(dataset.groups, layout.cases, "groups", "cases", path)
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
    references, channels = _read_image_heads(layout, rank, dataset, report)
    good = {layout.images[case] for case in channels}
    for rater, case, path in layout.masks:
        if path in heads:
            with reporting(report, path, case, rater):
                _refuse_misfit(heads[path], rank, references.get(case), place(path, case, rater))
                references.setdefault(case, (f"the mask {path}", heads[path]))
                good.add(path)
    shapes = {case: head.shape for case, (_, head) in references.items()}
    spacings = {case: head.spacing for case, (_, head) in references.items()}
    for _, case, path in layout.masks:  # of a picture without a spacing, masks may have one
        if path in good and spacings[case] is None:
            spacings[case] = heads[path].spacing
    return Survey(folder, layout, layout.only(good), dataset, rank, shapes, channels, spacings)


def is_table_folder(path: Path) -> bool:
    """Whether an import made it: a folder with a table, what it says of itself and, where there are any, pictures."""
    return (path / LABELS_FILE).is_file() and (path / DATASET_FILE).is_file() and not (path / RATERS).exists()


def is_parquet_table(path: Path) -> bool:
    """Whether it is a label table in several Parquet files: a folder of them with the columns item, rater, label."""
    if not path.is_dir() or not any(path.glob("*.parquet")):
        return False
    from annotruth.io.table_parts import is_parquet_folder  # which loads a library of its own

    return is_parquet_folder(path)


def scan(folder: Path, report: Report, with_raters: bool = True, truth: Path | None = Path(TRUTH)) -> Layout:
    """List a case folder's files, reporting what does not belong; only what does is in the answer.

    ``truth`` is where true masks lie, inside the folder or, as an absolute path, elsewhere; None leaves them out.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder.")
    has_images = (folder / IMAGES).is_dir()
    raters, negatives = _split_negatives(_list_raters(folder, report) if with_raters else {})
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
    for path in filter(_is_visible, sorted(folder.iterdir())):
        if path.is_dir() or suffix_of(path) is None:
            advice = f"Convert it to one of {', '.join(EXACT_SUFFIXES)}, or move it elsewhere."
            report(Problem("fatal", path, None, rater, "not a file of a known format.", advice))
            continue
        case = case_of(path)
        with reporting(report, path, case, rater):
            refuse_irregular(path)
            file_name(case, "case")
            if case in files:
                raise InputError(f"the case is there twice, also as {files[case].name}. Remove one of the two.")
            files[case] = path
    return files


def _refuse_strangers(names: Collection[str], known: Collection[str], key: str, what: str, path: Path) -> None:
    """Refuse names under ``key`` that the folder does not hold."""
    strangers = sorted(set(names) - set(known))
    if strangers:
        raise InputError(
            f"{path}: {key} names {what} the folder does not hold: {shorten(strangers)}. "
            f"Correct the spelling, or remove them; the folder holds {shorten(sorted(known))}."
        )


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


def _list_raters(folder: Path, report: Report) -> dict[str, dict[str, Path]]:
    home = folder / RATERS
    entries = sorted(filter(_is_visible, home.iterdir())) if home.is_dir() else []
    for stray in (entry for entry in entries if not entry.is_dir()):
        advice = f"Put it into {RATERS}/<rater>/."
        report(Problem("fatal", stray, None, None, "the file lies in no rater's folder.", advice))
    raters = {}
    for entry in (entry for entry in entries if entry.is_dir()):
        with reporting(report, entry, None, entry.name):
            refuse_unwritable(entry.name, "rater")
            raters[entry.name] = list_files(entry, report, entry.name)
    if not any(raters.values()):
        lack = f"there is no {RATERS}/ folder" if not home.is_dir() else "there is no rater's folder"
        message = f"{lack if not raters else 'no rater labelled anything'}: there is not a single mask."
        advice = f"A case folder holds {RATERS}/<rater>/<case>.<ext> and, mostly, {IMAGES}/<case>.<ext>."
        report(Problem("fatal", home if home.is_dir() else folder, None, None, message, advice))
    return raters


def _split_negatives(
    folders: dict[str, dict[str, Path]],
) -> tuple[dict[str, dict[str, Path]], dict[str, dict[str, Path]]]:
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


def _is_visible(path: Path) -> bool:
    return not path.name.startswith(".") and path.name.lower() not in ("thumbs.db", "desktop.ini")


def _read_image_heads(
    layout: Layout, rank: int, dataset: Dataset | None, report: Report
) -> tuple[dict[str, tuple[str, Header]], dict[str, int]]:
    """Give, by case, what masks are measured against (with its name for messages), and the number of channels."""
    references: dict[str, tuple[str, Header]] = {}
    channels: dict[str, int] = {}
    for case, path in layout.images.items() if rank else ():
        where = place(path, case)
        with reporting(report, path, case):
            head = image_header(path, rank, where)
            references[case] = ("the image", Header(head.shape[1:], head.affine, head.spacing))
            if dataset is not None and dataset.channels is not None and len(dataset.channels) != head.shape[0]:
                raise InputError(
                    f"{where}: the image has {head.shape[0]} channels, {DATASET_FILE} names {len(dataset.channels)} "
                    f"({shorten(dataset.channels)}). Correct the one or the other."
                )
            channels[case] = head.shape[0]
    return references, channels


def _refuse_misfit(mask: Header, rank: int, reference: tuple[str, Header] | None, where: str) -> None:
    if reference is not None:
        same_place(mask, reference[1], reference[0], where)
    elif len(mask.shape) != rank:
        raise InputError(f"{where}: the mask has {len(mask.shape)} axes, others have {rank}. Keep to one kind.")
