"""How well the borders of a labelling lie on edges of the images, and how well its classes tell what is bright.

A large network foretells borders a pixel too large as well as the true ones, and raters who err alike bear each other
out. But how bright a pixel is, and nothing else, tells on which side of a border it lies only if the border is where
the image changes. This unmasks raters who err alike, be they many. Borders well within what is bright tell nothing of
the rest of it, which takes a longer message.

Everything here takes batches: labellings (items, *spatial) of class numbers, 255 = unknown, and images
(items, channels, *spatial).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import ndimage

from annotruth.validation import MISSING_PIXEL

NEAR = 2
"""Pixels on either side of a border that are looked at: farther away, other things change than at it."""
BLUR = 0.7
"""Standard deviation, in pixels, by which images are blurred first, so that edges are not drowned by noise."""
SHADES = 12
"""Into how many equally common shades the pixels near a border are told apart."""


def blurred(images: np.ndarray) -> np.ndarray:
    """Images (items, channels, *spatial) whose noise is less."""
    return ndimage.gaussian_filter(images, (0, 0, *[BLUR] * (images.ndim - 2)))


def edge_information(labellings: Sequence[np.ndarray], images: Sequence[np.ndarray], classes: int) -> float:
    """The share of which side of a border pixels lie on that is known from how bright they are.

    Returns
    -------
    the mean over foreground classes, each by the channel that tells most of it, from 0 to 1; items without a border of
    a class tell nothing of it

    Examples
    --------
    >>> image = np.array([[[0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0]]])
    >>> right, larger = np.array([[0, 0, 0, 1, 1, 1, 0, 0, 0]]), np.array([[0, 0, 1, 1, 1, 1, 1, 0, 0]])
    >>> [round(edge_information([each], [image], classes=2), 2) for each in (right, larger)]
    [1.0, 0.31]
    """
    found = []
    for number in range(1, classes):
        inside = [drawn == number for drawn in labellings]
        beside = [_near(each) & (drawn != MISSING_PIXEL) for each, drawn in zip(inside, labellings)]
        within = np.concatenate([each[at] for each, at in zip(inside, beside)])
        known = [
            _told(np.concatenate([image[:, channel][at] for image, at in zip(images, beside)]), within)
            for channel in range(images[0].shape[1])
        ]
        found.append(max(known) * float(np.mean(np.concatenate([_has_border(each) for each in inside]))))
    return float(np.mean(found))


def near_borders(labellings: Sequence[np.ndarray], classes: int) -> np.ndarray:
    """Which pixels (items, *spatial) lie near a border of any of some labellings (items, *spatial) of the same items.

    Examples
    --------
    >>> near_borders([np.array([[0, 0, 0, 0, 0, 1]]), np.array([[0, 0, 0, 0, 0, 0]])], classes=2).astype(int)
    array([[0, 0, 0, 1, 1, 1]])
    """
    return np.any([_near(each == number) for each in labellings for number in range(1, classes)], axis=0)


def shade_lengths(
    labellings: Sequence[np.ndarray], images: Sequence[np.ndarray], looked_at: Sequence[np.ndarray], classes: int
) -> np.ndarray:
    """Nats (items,) that it takes to tell how bright pixels are, by the classes that a labelling gives them.

    Parameters
    ----------
    images : of several channels, the mean is taken
    looked_at : (items, *spatial) of each batch, which pixels are told

    Examples
    --------
    >>> image = np.array([[[0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0]]])
    >>> right, larger = np.array([[0, 0, 0, 1, 1, 1, 0, 0, 0]]), np.array([[0, 0, 1, 1, 1, 1, 1, 0, 0]])
    >>> [shade_lengths([each], [image], [image[:, 0] >= 0], classes=2).round(1).tolist() for each in (right, larger)]
    [[2.3], [5.3]]
    """
    counts = np.concatenate([at.reshape(len(at), -1).sum(axis=1) for at in looked_at])
    item = np.repeat(np.arange(len(counts)), counts)
    within = np.concatenate([drawn[at] for drawn, at in zip(labellings, looked_at)]).astype(np.intp)
    channels = images[0].shape[1]
    found = np.zeros(len(counts))
    for channel in range(channels):
        shade, shades = _shades(np.concatenate([image[:, channel][at] for image, at in zip(images, looked_at)]))
        both = np.bincount(within * shades + shade, minlength=classes * shades).reshape(classes, shades) + 0.5
        nats = -np.log(both / both.sum(axis=1, keepdims=True))
        found += np.bincount(item, weights=nats[within, shade], minlength=len(counts))
    return found / channels


def _near(inside: np.ndarray) -> np.ndarray:
    """Which pixels lie within ``NEAR`` of a border of what is inside; the first ones are half a pixel away from it."""
    away = np.indices((2 * NEAR + 1,) * (inside.ndim - 1)) - NEAR
    ball = ((away**2).sum(axis=0) < (NEAR + 0.5) ** 2)[None]
    return np.where(inside, ndimage.binary_dilation(~inside, ball), ndimage.binary_dilation(inside, ball))


def _has_border(inside: np.ndarray) -> np.ndarray:
    """Which items have pixels inside, and others."""
    flat = inside.reshape(len(inside), -1)
    return np.logical_and(flat.any(axis=1), ~flat.all(axis=1))


def _told(bright: np.ndarray, within: np.ndarray) -> float:
    """How much of what lies within is known from how bright it is: mutual information over entropy."""
    if not within.any() or within.all():
        return 0.0
    shade, shades = _shades(bright)
    both = np.bincount(2 * shade + within, minlength=2 * shades).reshape(-1, 2) / len(within)
    before, apart = _entropy(both.sum(axis=0)), _entropy(both.sum(axis=1))
    return (before + apart - _entropy(both.ravel())) / before


def _shades(bright: np.ndarray) -> tuple[np.ndarray, int]:
    """The shade of each pixel, and how many there are; fewer where many pixels are equally bright."""
    edges = np.unique(np.quantile(bright, np.linspace(0, 1, SHADES + 1)[1:-1])) if len(bright) else np.empty(0)
    return np.searchsorted(edges, bright, side="right"), len(edges) + 1


def _entropy(shares: np.ndarray) -> float:
    shares = shares[shares > 0]
    return float(-(shares * np.log(shares)).sum())
