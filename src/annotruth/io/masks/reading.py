"""One mask as class numbers, from one file or from one for each class; what is passed on can be pickled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from annotruth.errors import InputError
from annotruth.io.contents import Mask
from annotruth.io.files import format_of, image_header, reading
from annotruth.io.formats import nifti
from annotruth.io.masks.joining import fit_size, join_layers
from annotruth.io.masks.planes import PICTURE_SUFFIXES, read_planes
from annotruth.io.masks.rules import MaskRule
from annotruth.io.problems import place


@dataclass(frozen=True)
class Part:
    """A file of a mask, and the class that what it marks belongs to; None where the file holds all classes."""

    file: Path
    number: int | None = None


def saved_mask(
    parts: Sequence[Part], rule: MaskRule, rank: int, shape: tuple[int, ...] | None = None, resize: bool = False
) -> Mask:
    """A mask of one file, or of one for each class, the last on top.

    Parameters
    ----------
    rule : of files for single classes, one that tells marked pixels (1) from others (0)
    shape : that of the image, to which the mask must fit; None where there is none
    resize : whether a mask that is smaller or larger by a whole number may be brought to the image's size
    """
    return Mask(parts[0].file, partial(read_parts, tuple(parts), rule, rank, shape, resize))


def read_parts(
    parts: Sequence[Part], rule: MaskRule, rank: int, shape: tuple[int, ...] | None = None, resize: bool = False
) -> np.ndarray:
    """Class numbers (*spatial) as uint8, 255 = not labelled."""
    layers = []
    with unnamed(parts[0].file):
        for part in parts:
            where = str(part.file)
            planes = read_planes(part.file, where, rank, palette=rule.palette)
            numbers = rule.apply(planes, where)
            layers.append(numbers if shape is None else fit_size(numbers, shape, where, resize))
    if len(parts) == 1 and parts[0].number is None:
        return layers[0]
    if len({layer.shape for layer in layers}) > 1:
        raise InputError("the files of this mask's classes differ in size. Save them alike.")
    return join_layers([layer == 1 for layer in layers], [part.number or 1 for part in parts])


@contextmanager
def unnamed(file: Path) -> Iterator[None]:
    """Leave a file's name out of an error, for whoever reads the mask to say it with case and rater."""
    try:
        yield
    except InputError as error:
        raise InputError(str(error).removeprefix(f"{file}: ")) from None


def find_rank(image: Path | None, mask: Path) -> int:
    """How many spatial axes an image, or where there is none a mask, has."""
    for path in (image, mask):
        if path is None:
            continue
        if path.name.lower().endswith(PICTURE_SUFFIXES):
            return 2
        if format_of(path) is nifti:
            with reading(str(path)):
                shape = nifti.mask_axes(path)
            return 3 if len([size for size in shape[2:3] if size > 1]) else 2
    return len(read_planes(mask, str(mask)).shape)


def image_shape(image: Path, rank: int, case: str) -> tuple[int, ...]:
    """Spatial size of an image, from its head."""
    return image_header(image, rank, place(image, case)).shape[1:]
