"""Segmentations of volumes, collected image by image, whose boxes may differ from rater to rater."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from annotruth.data.annotations import Lazy
from annotruth.errors import InputError
from annotruth.io.contents import Contents, Item, Mask, name_items, name_raters
from annotruth.io.drawn import BACKGROUND
from annotruth.io.grids import Grid, Placement, common_grid, place_in
from annotruth.io.problems import Problem, Report, reporting

ReadVolume = Callable[[Path, tuple[str, ...]], np.ndarray]
"""Reads class numbers (three axes) from a file, by the names of the classes: a module-level function, or a partial."""


@dataclass
class _Segmentation:
    file: Path
    grid: Grid
    read: ReadVolume


@dataclass
class _Volume:
    name: str
    image: Path | Lazy | None
    grid: Grid | None
    group: str | None
    segmentations: dict[Any, _Segmentation] = field(default_factory=dict)


class Volumes:
    """Segmentations of volumes, to be added one by one, and given as :class:`Contents`."""

    def __init__(self, report: Report, duplicates: str = "error") -> None:
        self._report, self._duplicates = report, duplicates
        self._volumes: dict[Any, _Volume] = {}
        self._raters: dict[Any, str] = {}
        self._labels: list[str] = []
        self.notes: list[str] = []

    def add_image(
        self, key: Any, name: str, image: Path | Lazy | None, grid: Grid | None, group: str | None = None
    ) -> None:
        """Add an image under a key of its own, with its grid; without one the segmentations' boxes tell it."""
        self._volumes.setdefault(key, _Volume(name, image, grid, group))

    def add(
        self, key: Any, file: Path, rater: Any, rater_name: str, labels: list[str], grid: Grid, read: ReadVolume
    ) -> None:
        """Add one rater's segmentation of an image that was added before.

        Parameters
        ----------
        labels : names of its segments, in order
        read : reads it as class numbers on ``grid``
        """
        volume = self._volumes[key]
        self._labels += [label for label in labels if label not in self._labels]
        self._raters.setdefault(rater, rater_name)
        if rater in volume.segmentations:
            severity = "fatal" if self._duplicates == "error" else "warning"
            message = f"the rater labelled this image twice, also in {volume.segmentations[rater].file.name}."
            advice = "The later one counts. Remove one of the two, or accept the later: --duplicates keep-last."
            self._report(Problem(severity, file, volume.name, rater_name, message, advice))  # type: ignore[arg-type]
        volume.segmentations[rater] = _Segmentation(file, grid, read)

    def contents(self) -> Contents:
        """Give all that was added; of images, only those that somebody labelled, where most were not."""
        rest = [label for label in self._labels if label.casefold() != BACKGROUND]
        classes = (BACKGROUND, *rest)
        volumes = {key: volume for key, volume in self._volumes.items() if volume.segmentations}
        names = name_items({key: volume.name for key, volume in volumes.items()})
        raters = name_raters(self._raters)
        items = [self._item(names[key], volume, raters, classes) for key, volume in volumes.items()]
        for item, key in zip(items, volumes):
            item.origin = str(key)
        if any(item.image is None for item in items) and any(item.image is not None for item in items):
            for item in (item for item in items if item.image is None):
                file = next(iter(item.masks.values())).file
                message = "there is no image for this segmentation, as there is for others."
                self._report(Problem("fatal", file, item.name, None, message, "Add the image, or remove it."))
            items = [item for item in items if item.image is not None]
        return Contents(classes, [item for item in items if item.masks], notes=self.notes)

    def _item(self, name: str, volume: _Volume, raters: dict[Any, str], classes: tuple[str, ...]) -> Item:
        grid = volume.grid
        if grid is None:
            grid = next(iter(volume.segmentations.values())).grid
            for key in list(volume.segmentations):
                with reporting(self._report, volume.segmentations[key].file, name, raters[key]):
                    grid = common_grid([grid, volume.segmentations[key].grid])
        masks = {}
        for key, segmentation in volume.segmentations.items():
            with reporting(self._report, segmentation.file, name, raters[key]):
                placement = place_in(segmentation.grid, grid)
                read = partial(_read_placed, segmentation.read, segmentation.file, classes, placement, grid.shape)
                masks[raters[key]] = Mask(segmentation.file, read)
        affine = None if isinstance(volume.image, Path) else grid.affine
        return Item(name, grid.shape, masks, volume.image, group=volume.group, affine=affine, spacing=grid.spacing)


def _read_placed(
    read: ReadVolume, file: Path, classes: tuple[str, ...], placement: Placement, shape: tuple[int, ...]
) -> np.ndarray:
    try:
        labels = read(file, classes)
    except InputError:
        raise
    except Exception as error:  # a damaged file can raise anything inside its parser
        raise InputError(
            f"cannot be read ({' '.join(str(error).split())}). The file is damaged; replace it."
        ) from error
    return placement.paste(labels, shape)
