"""Pictures of a label table's items: one file each in a folder, named after the item."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from annotruth.errors import InputError, shorten
from annotruth.io.files import image_header, read_image
from annotruth.io.layout import IMAGES, list_files
from annotruth.io.problems import Problem, Report, place, reporting


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

    def read(self, item: str) -> np.ndarray:
        """One item's picture (channels, *spatial)."""
        return read_picture(self.files[item], self.rank, item)


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
    rank, shapes = next(iter(_ranks(files)), 2), {}
    for item, path in files.items():
        with reporting(report, path, item):
            shapes[item] = image_header(path, rank, place(path, item)).shape
    _compare_sizes(files, shapes, report)
    taken = set(files.values())
    return Pictures(files, shapes, rank, [path for path in listed.values() if path not in taken])


def read_picture(path: Path, rank: int, item: str) -> np.ndarray:
    """Read one item's picture (channels, *spatial)."""
    return read_image(path, rank, place(path, item))


def _ranks(files: dict[str, Path]) -> Iterator[int]:
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
