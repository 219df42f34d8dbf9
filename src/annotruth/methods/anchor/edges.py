"""How well the borders of a labelling lie on edges of the images, and how well its classes tell what is bright.

A large network foretells borders a pixel too large as well as the true ones. How bright a pixel is, and nothing else,
tells on which side of a border it lies only if the border is where the image changes. This unmasks raters who err
alike, be they many. Borders well within what is bright tell nothing of the rest of it, which takes a longer message.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from scipy import ndimage
from torch import Tensor

from annotruth.methods.anchor.offsets import border_distances
from annotruth.nn.labels import is_labelled

NEAR = 2
"""Pixels on either side of a border that are looked at: farther away, other things change than at it."""
BLUR = 0.7
"""Standard deviation, in pixels, by which images are blurred first, so that edges are not drowned by noise."""
SHADES = 12
"""Into how many equally common shades the pixels near a border are told apart."""


def blurred(images: Tensor) -> Tensor:
    """Images (batch, channels, *spatial) whose noise is less."""
    widths = (0, 0, *[BLUR] * (images.ndim - 2))
    return torch.from_numpy(ndimage.gaussian_filter(images.cpu().numpy(), widths)).to(images.device)


def edge_information(labellings: Sequence[Tensor], images: Sequence[Tensor], classes: int) -> float:
    """The share of which side of a border pixels lie on that is known from how bright they are.

    Parameters
    ----------
    labellings : (batch, *spatial) class numbers of each batch, 255 = unknown
    images : (batch, channels, *spatial) of each batch

    Returns
    -------
    the mean over foreground classes, each by the channel that tells most of it, from 0 to 1; items without a border of
    a class tell nothing of it

    Examples
    --------
    >>> image = torch.tensor([[[0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0]]])
    >>> right, larger = torch.tensor([[0, 0, 0, 1, 1, 1, 0, 0, 0]]), torch.tensor([[0, 0, 1, 1, 1, 1, 1, 0, 0]])
    >>> [round(edge_information([each], [image], classes=2), 2) for each in (right, larger)]
    [1.0, 0.31]
    """
    near = [border_distances(each, classes).abs() < NEAR for each in labellings]
    found = []
    for number in range(1, classes):
        beside = [
            each[:, number - 1] & is_labelled(drawn, classes) & _has_border(drawn == number)
            for each, drawn in zip(near, labellings)
        ]
        within = torch.cat([(drawn == number)[at] for drawn, at in zip(labellings, beside)]).cpu().numpy()
        known = [
            _told(torch.cat([image[:, channel][at] for image, at in zip(images, beside)]).cpu().numpy(), within)
            for channel in range(images[0].shape[1])
        ]
        with_border = torch.cat([_has_border(drawn == number).flatten() for drawn in labellings])
        found.append(max(known) * float(with_border.float().mean()))
    return float(np.mean(found))


def near_borders(labellings: Sequence[Tensor], classes: int) -> Tensor:
    """Which pixels (batch, *spatial) lie near a border of any of some labellings (batch, *spatial) of the same items.

    Examples
    --------
    >>> near_borders([torch.tensor([[0, 0, 0, 0, 0, 1]]), torch.tensor([[0, 0, 0, 0, 0, 0]])], classes=2).int()
    tensor([[0, 0, 0, 1, 1, 1]], dtype=torch.int32)
    """
    return torch.stack([(border_distances(each, classes).abs() < NEAR).any(dim=1) for each in labellings]).any(dim=0)


def shade_lengths(
    labellings: Sequence[Tensor], images: Sequence[Tensor], looked_at: Sequence[Tensor], classes: int
) -> np.ndarray:
    """Nats (items,) that it takes to tell how bright pixels are, by the classes that a labelling gives them.

    Parameters
    ----------
    labellings : (batch, *spatial) class numbers of each batch
    images : (batch, channels, *spatial) of each batch; of several channels, the mean is taken
    looked_at : (batch, *spatial) of each batch, which pixels are told

    Examples
    --------
    >>> image = torch.tensor([[[0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0]]])
    >>> right, larger = torch.tensor([[0, 0, 0, 1, 1, 1, 0, 0, 0]]), torch.tensor([[0, 0, 1, 1, 1, 1, 1, 0, 0]])
    >>> [shade_lengths([each], [image], [image[:, 0] >= 0], classes=2).round(1).tolist() for each in (right, larger)]
    [[2.3], [5.3]]
    """
    counts = np.concatenate([at.flatten(1).sum(dim=1).cpu().numpy() for at in looked_at])
    item = np.repeat(np.arange(len(counts)), counts)
    within = torch.cat([drawn[at] for drawn, at in zip(labellings, looked_at)]).cpu().numpy().astype(np.intp)
    channels = images[0].shape[1]
    found = np.zeros(len(counts))
    for channel in range(channels):
        bright = torch.cat([image[:, channel][at] for image, at in zip(images, looked_at)]).cpu().numpy()
        shade, shades = _shades(bright)
        both = np.bincount(within * shades + shade, minlength=classes * shades).reshape(classes, shades) + 0.5
        nats = -np.log(both / both.sum(axis=1, keepdims=True))
        found += np.bincount(item, weights=nats[within, shade], minlength=len(counts))
    return found / channels


def _has_border(there: Tensor) -> Tensor:
    """Which items (batch, 1, ...) have pixels of a class, and others."""
    flat = there.flatten(1)
    return (flat.any(dim=1) & ~flat.all(dim=1)).view(-1, *[1] * (there.ndim - 1))


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
