"""Augmentation: items seen in another way, image and masks moved together; or a batch of pictures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from annotruth.validation import MISSING_PIXEL

MOVED = 0.5
"""Share of the items that are turned, scaled and shifted; the others stay as sharp as they are."""
ANGLE, SCALE, SHIFT = np.deg2rad(15), 1.15, 0.05
"""By how much at most: radians, a factor either way, a share of each side."""
CONTRAST, BRIGHTNESS = 1.15, 0.15
"""A factor either way, and a number of standard deviations."""
PICTURE_SHIFT = 8
"""Pictures are shifted along each axis by this part of its length at most: 4 pixels of 32."""


@dataclass(frozen=True)
class Change:
    """How one item is seen in another way.

    Attributes
    ----------
    mirrored : axes along which it is mirrored, counted from 0
    affine : (axes, axes + 1) where each pixel comes from, as torch wants it: last axis first, and every side as long as
        from -1 to 1; None = it stays where it is
    contrast, brightness : (channels,) what each channel is multiplied with, and what is added to it
    """

    mirrored: tuple[int, ...]
    affine: np.ndarray | None
    contrast: np.ndarray
    brightness: np.ndarray

    @classmethod
    def draw(cls, channels: int, size: Sequence[int], mirror: Collection[int], rng: np.random.Generator) -> Change:
        """By chance, which comes from ``rng``, for an image (channels, *size); ``mirror`` are axes to mirror along."""
        along = [axis for axis in range(len(size)) if rng.random() < 0.5]  # one number each, whatever may be mirrored
        affine = _affine(size, rng) if rng.random() < MOVED else None
        contrast = CONTRAST ** rng.uniform(-1, 1, channels)
        return cls(tuple(a for a in along if a in mirror), affine, contrast, BRIGHTNESS * rng.uniform(-1, 1, channels))


def augment(
    images: Sequence[Tensor], labels: Sequence[Tensor], changes: Sequence[Change]
) -> tuple[list[Tensor], list[Tensor]]:
    """Mirror items, turn, scale and shift some of them a little, and change their intensities.

    Images are interpolated linearly. Labels come from the nearest pixel: what was not labelled stays so, no other
    labels appear, and what comes from outside is not labelled. Items of one size are moved together; each looks as it
    would alone.

    Parameters
    ----------
    images : (channels, *spatial) each, standardised, 2 or 3 spatial axes
    labels : (raters, *spatial) uint8 each, 255 = not labelled
    changes : one for each item

    Examples
    --------
    >>> image, labels = torch.zeros(1, 5, 6), torch.full((2, 5, 6), 3, dtype=torch.uint8)
    >>> change = Change.draw(1, (5, 6), mirror=(0, 1), rng=np.random.default_rng(0))
    >>> images, masks = augment([image], [labels], [change])
    >>> images[0].shape, masks[0].shape
    (torch.Size([1, 5, 6]), torch.Size([2, 5, 6]))
    """
    flips = [[axis + 1 for axis in change.mirrored] for change in changes]
    images = [image.flip(axes) if axes else image for image, axes in zip(images, flips)]
    labels = [label.flip(axes) if axes else label for label, axes in zip(labels, flips)]
    alike: dict[torch.Size, dict[int, np.ndarray]] = defaultdict(dict)
    for position, change in enumerate(changes):
        if change.affine is not None:
            alike[images[position].shape][position] = change.affine
    for moves in alike.values():
        together, drawn = (torch.stack([of[position] for position in moves]) for of in (images, labels))
        affine = torch.from_numpy(np.stack(list(moves.values()))).float()
        for position, image, label in zip(moves, *_moved(together, drawn, affine)):
            images[position], labels[position] = image, label
    return [_shaded(image, change) for image, change in zip(images, changes)], labels


def augment_pictures(pictures: Tensor, chance: np.ndarray) -> Tensor:
    """Shift each picture of a batch by a few whole pixels, and change its contrast and brightness a little.

    What comes in at a border is what lies within, mirrored. Pictures themselves are not mirrored or turned: a digit, a
    letter or a left lung would become another.

    Parameters
    ----------
    pictures : (batch, channels, *spatial), standardised
    chance : (batch, 2 + spatial axes) numbers from 0 to 1, which decide

    Examples
    --------
    >>> augment_pictures(torch.arange(16.0).reshape(1, 1, 1, 16), np.array([[0.5, 0.5, 0.5, 0.99]]))
    tensor([[[[ 2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13., 14., 15.,
               14., 13.]]]])
    """
    for axis, length in enumerate(pictures.shape[2:], start=2):
        most = length // PICTURE_SHIFT
        if most:
            shift = torch.from_numpy((chance[:, axis] * (2 * most + 1)).astype(np.int64) - most)
            taken = (shift[:, None] + torch.arange(length)).abs()
            taken = length - 1 - (length - 1 - taken).abs()
            shape = (len(pictures), *[length if each == axis else 1 for each in range(1, pictures.ndim)])
            pictures = pictures.gather(axis, taken.view(shape).expand_as(pictures))
    change = (
        torch.from_numpy(2 * chance[:, :2] - 1).to(pictures.dtype).view(len(pictures), 2, *[1] * (pictures.ndim - 1))
    )
    return pictures * CONTRAST ** change[:, 0] + BRIGHTNESS * change[:, 1]


def _affine(size: Sequence[int], rng: np.random.Generator) -> np.ndarray:
    sides = np.array(size[::-1], dtype=np.float64)
    matrix = np.eye(len(sides)) * SCALE ** rng.uniform(-1, 1)
    for i, j in combinations(range(len(sides)), 2):
        # A thin volume, turned like a thick one, would be out of sight for the most part.
        angle = ANGLE * rng.uniform(-1, 1) * min(sides[i], sides[j]) / max(sides[i], sides[j])
        turn = np.eye(len(sides))
        turn[[i, i, j, j], [i, j, i, j]] = np.cos(angle), -np.sin(angle), np.sin(angle), np.cos(angle)
        matrix = matrix @ turn
    shift = 2 * SHIFT * rng.uniform(-1, 1, len(sides))
    return np.column_stack([matrix * sides / sides[:, None], shift])


def _moved(images: Tensor, labels: Tensor, affine: Tensor) -> tuple[Tensor, Tensor]:
    """Images (batch, channels, *spatial) and labels (batch, raters, *spatial), each moved by its own matrix."""
    grid = _grid(affine, images.shape[2:])
    images = F.grid_sample(images, grid, mode="bilinear", padding_mode="border", align_corners=False)
    # Outside there are zeros, so that "not labelled" must be zero while labels are moved.
    turned = F.grid_sample(
        (MISSING_PIXEL - labels).float(), grid, mode="nearest", padding_mode="zeros", align_corners=False
    )
    return images, MISSING_PIXEL - turned.to(torch.uint8)


def _grid(affine: Tensor, size: Sequence[int]) -> Tensor:
    """Where every pixel comes from: (batch, *spatial, axes), as ``F.affine_grid`` gives it.

    That multiplies matrices, whose last bits depend on how many there are; here an item's bits are its own.
    """
    axes = len(size)
    grid = affine[:, :, -1].view(-1, *[1] * axes, axes)
    for axis, length in enumerate(size):
        along = (2 * torch.arange(length) + 1) / length - 1
        place = along.view(*[length if other == axis else 1 for other in range(axes)], 1)
        grid = grid + place * affine[:, :, axes - 1 - axis].view(-1, *[1] * axes, axes)
    return grid


def _shaded(image: Tensor, change: Change) -> Tensor:
    per_channel = (-1, *[1] * (image.ndim - 1))
    contrast, brightness = (
        torch.from_numpy(values).to(image.dtype).view(per_channel) for values in (change.contrast, change.brightness)
    )
    return image * contrast + brightness
