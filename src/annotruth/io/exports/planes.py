"""What exports to tools for plane images have in common: a region per class, and the image's own name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

import numpy as np

from annotruth.errors import InputError
from annotruth.io.files import suffix_of
from annotruth.io.results import Result, ResultItem, image_suffix


@dataclass(frozen=True)
class Region:
    """Where a class is in an image: its number and name, bool (height, width), and its mean probability there."""

    number: int
    label: str
    mask: np.ndarray
    score: float


def class_regions(result: Result, item: ResultItem) -> Iterator[Region]:
    """The regions of an item's classes but the background, as far as there are any."""
    labels = item.read_labels()
    chances = item.read_probabilities() if item.read_probabilities is not None else None
    for number, name in enumerate(result.classes):
        mask = labels == number
        if number and mask.any():
            known = chances is not None and number < len(chances)
            score = float(chances[number][mask].mean()) if known and chances is not None else 1.0
            yield Region(number, name, mask, round(score, 6))


def plane_size(item: ResultItem) -> tuple[int, int]:
    """(height, width), refusing volumes."""
    if len(item.shape) != 2:
        size = "×".join(map(str, item.shape))
        raise InputError(f"{item.file} (case {item.name}): a volume ({size}), and this export holds planes.")
    return item.shape[0], item.shape[1]


def image_name(item: ResultItem) -> str:
    """What the image is called where it came from, or the name of its file."""
    if item.origin != item.name and suffix_of(PurePosixPath(item.origin).name) is not None:
        return item.origin
    return f"{item.origin}{image_suffix(item)}"
