"""Augmentation: one item seen in another way, image and masks moved together; or a batch of pictures."""

from __future__ import annotations

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


def augment(image: Tensor, labels: Tensor, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Mirror an item along each axis or not, maybe turn, scale and shift it a little, and change its intensities.

    Images are interpolated linearly. Labels come from the nearest pixel: what was not labelled stays so, no other
    labels appear, and what comes from outside is not labelled.

    Parameters
    ----------
    image : (channels, *spatial), standardised, 2 or 3 spatial axes
    labels : (raters, *spatial) uint8, 255 = not labelled
    rng : all chance comes from here

    Examples
    --------
    >>> image = torch.zeros(1, 5, 6)
    >>> labels = torch.full((2, 5, 6), 3, dtype=torch.uint8)
    >>> image, labels = augment(image, labels, np.random.default_rng(0))
    >>> image.shape, labels.shape
    (torch.Size([1, 5, 6]), torch.Size([2, 5, 6]))
    """
    axes = [axis for axis in range(1, image.ndim) if rng.random() < 0.5]
    image, labels = image.flip(axes), labels.flip(axes)
    if rng.random() < MOVED:
        image, labels = _moved(image, labels, _affine(image.shape[1:], rng))
    per_channel = (len(image), *[1] * (image.ndim - 1))
    contrast = torch.from_numpy(CONTRAST ** rng.uniform(-1, 1, per_channel)).to(image.dtype)
    brightness = torch.from_numpy(BRIGHTNESS * rng.uniform(-1, 1, per_channel)).to(image.dtype)
    return image * contrast + brightness, labels


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


def _affine(size: tuple[int, ...], rng: np.random.Generator) -> Tensor:
    """A matrix (axes, axes + 1) as torch wants it: last axis first, and every side as long as from -1 to 1."""
    sides = np.array(size[::-1], dtype=np.float64)
    matrix = np.eye(len(sides)) * SCALE ** rng.uniform(-1, 1)
    for i, j in combinations(range(len(sides)), 2):
        # A thin volume, turned like a thick one, would be out of sight for the most part.
        angle = ANGLE * rng.uniform(-1, 1) * min(sides[i], sides[j]) / max(sides[i], sides[j])
        turn = np.eye(len(sides))
        turn[[i, i, j, j], [i, j, i, j]] = np.cos(angle), -np.sin(angle), np.sin(angle), np.cos(angle)
        matrix = matrix @ turn
    shift = 2 * SHIFT * rng.uniform(-1, 1, len(sides))
    return torch.from_numpy(np.column_stack([matrix * sides / sides[:, None], shift])).float()


def _moved(image: Tensor, labels: Tensor, affine: Tensor) -> tuple[Tensor, Tensor]:
    grid = F.affine_grid(affine[None], [1, 1, *image.shape[1:]], align_corners=False)
    image = F.grid_sample(image[None], grid, mode="bilinear", padding_mode="border", align_corners=False)[0]
    # Outside there are zeros, so that "not labelled" must be zero while labels are moved.
    turned = (MISSING_PIXEL - labels)[None].float()
    turned = F.grid_sample(turned, grid, mode="nearest", padding_mode="zeros", align_corners=False)[0]
    return image, MISSING_PIXEL - turned.to(torch.uint8)
