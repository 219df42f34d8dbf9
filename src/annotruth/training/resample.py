"""Images of different spacing on one grid, and what is predicted there back on their own.

Grids lie so that the outer edges of an image stay where they are (``align_corners=False``): its pixels become more and
smaller, or fewer and larger.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError, shorten

Spacings = Sequence[float] | Sequence[Sequence[float] | None] | None
"""Millimetres from pixel to pixel: one number for each axis, for all images; or that, or None, for each image."""
SAME_SPACING = 0.1
"""Spacings that differ from their median by no more than this share are taken as the same: nothing is resampled."""


def plan_spacing(annotations: Annotations) -> tuple[tuple[float, ...] | None, tuple[float, ...] | None]:
    """The spacing that images are resampled to, None = none, and the one that they then have, None = nobody knows.

    Images are resampled to the median along each axis where spacings differ.

    Examples
    --------
    >>> masks = [np.zeros((1, 8, 8)), np.zeros((1, 8, 8)), np.zeros((1, 8, 8))]
    >>> plan_spacing(Annotations.from_masks(masks, spacing=[(1, 1), (2, 1), (4, 1)]))
    ((2.0, 1.0), (2.0, 1.0))
    >>> plan_spacing(Annotations.from_masks(masks, spacing=(0.5, 2)))
    (None, (0.5, 2.0))
    """
    every = [annotations.spacing(index) for index in range(len(annotations))]
    known = np.array([spacing for spacing in every if spacing is not None], dtype=np.float64)
    if len(known) == 0:
        return None, None
    middle = np.median(known, axis=0)
    median = tuple(float(f"{step:.6g}") for step in middle)
    if np.abs(known / middle - 1).max() <= SAME_SPACING:
        return None, median
    _refuse_missing(annotations, f"while others differ in theirs and are resampled to {_mm(median)}")
    return median, median


def grid_sizes(annotations: Annotations, target: Sequence[float] | None) -> list[tuple[int, ...]]:
    """The spatial size of each item, resampled to this spacing; None = as it is."""
    shapes = [annotations.shape(index) for index in range(len(annotations))]
    if target is None:
        return shapes
    _refuse_missing(annotations, f"but images are resampled to {_mm(target)} by the plan")
    return [grid_size(shape, annotations.spacing(index), target) for index, shape in enumerate(shapes)]


def grid_size(size: Sequence[int], spacing: Sequence[float] | None, target: Sequence[float] | None) -> tuple[int, ...]:
    """The size of an image after resampling; its own where a spacing is not known, or none is wanted.

    Examples
    --------
    >>> grid_size((100, 80, 10), spacing=(0.5, 0.5, 3), target=(1, 0.5, 1))
    (50, 80, 30)
    """
    if spacing is None or target is None:
        return tuple(size)
    return tuple(max(round(n * has / wanted), 1) for n, has, wanted in zip(size, spacing, target))


def interpolate(values: Tensor, size: Sequence[int]) -> Tensor:
    """Values (channels, *spatial) on a grid of another size, linearly between pixels.

    Examples
    --------
    >>> interpolate(torch.tensor([[[0.0, 4.0]]]), (1, 4)).tolist()
    [[[0.0, 1.0, 3.0, 4.0]]]
    """
    if tuple(values.shape[1:]) == tuple(size):
        return values
    mode = "bilinear" if len(size) == 2 else "trilinear"
    return F.interpolate(values[None], tuple(size), mode=mode, align_corners=False)[0]


def resampled(image: np.ndarray, size: Sequence[int]) -> np.ndarray:
    """An image (channels, *spatial) on a grid of another size; itself, if it has that size."""
    return image if image.shape[1:] == tuple(size) else interpolate(torch.from_numpy(image.copy()), size).numpy()


def nearest(labels: Tensor, size: Sequence[int]) -> Tensor:
    """Labels (raters, *spatial) on a grid of another size: those of the nearest pixel, so that none are made up.

    Examples
    --------
    >>> nearest(torch.tensor([[[1, 255]]]), (1, 5)).tolist()
    [[[1, 1, 255, 255, 255]]]
    """
    for axis, (length, wanted) in enumerate(zip(labels.shape[1:], size), start=1):
        if length != wanted:
            place = (2 * torch.arange(wanted) + 1) * length // (2 * wanted)
            labels = labels.index_select(axis, place)
    return labels


def back_on_grid(values: Tensor, size: Sequence[int]) -> np.ndarray:
    """Values (..., *spatial), interpolated linearly to the size of an image's own grid.

    Examples
    --------
    >>> back_on_grid(torch.ones(2, 3, 4, 4), (8, 2)).shape
    (2, 3, 8, 2)
    """
    channels = values.shape[: values.ndim - len(size)]
    return interpolate(values.flatten(0, len(channels) - 1), size).unflatten(0, channels).numpy()


def spacings(given: Spacings, count: int) -> list[Sequence[float] | None]:
    """One spacing for each of so many images.

    Examples
    --------
    >>> spacings((1, 0.5), 2), spacings([(1, 0.5), None], 2)
    ([(1, 0.5), (1, 0.5)], [(1, 0.5), None])
    """
    if given is None or (len(given) and all(each is not None and np.ndim(each) == 0 for each in given)):
        return [given] * count  # type: ignore[list-item]
    if len(given) != count:
        raise InputError(f"{count} images but {len(given)} spacings: give one for each, or one for all.")
    return list(given)  # type: ignore[arg-type]


def _refuse_missing(annotations: Annotations, why: str) -> None:
    missing = [item for index, item in enumerate(annotations.items) if annotations.spacing(index) is None]
    if missing:
        raise InputError(
            f"No spacing, or one of zero, is known of {shorten(missing)}, {why}. Write the spacing into the files (or "
            'give it with spacing=), or train by a plan with "spacing": null, which resamples nothing.'
        )


def _mm(spacing: Sequence[float]) -> str:
    return " × ".join(f"{step:g}" for step in spacing) + " mm"
