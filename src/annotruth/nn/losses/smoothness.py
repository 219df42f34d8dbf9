"""Neighbours that look alike are mostly of one class: what strokes say spreads to pixels that nobody marked."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import torch
from torch import Tensor

NEIGHBOUR_DISTANCES = (1, 2, 4)
"""How far apart, in pixels, neighbours are that are compared, along every axis and diagonal."""


def smoothness_loss(log_truth: Tensor, images: Tensor) -> Tensor:
    """How often pixels near each other that look alike are of different classes: a mean over pairs, 0 to 1.

    A pair counts exp(−Δ² / 2σ²), for a difference Δ of the two intensities; σ² is the mean of Δ² over the direct
    neighbours of the image, so that noise is told from edges. This is the relaxed energy of a conditional random field,
    of pairs in eight directions (in 2D) at three distances.

    Parameters
    ----------
    log_truth : (batch, classes, *spatial) log-probabilities
    images : (batch, channels, *spatial)

    Examples
    --------
    >>> images = torch.zeros(1, 1, 8, 12)
    >>> images[..., 6:] = 5.0
    >>> inside = (images[:, 0] > 1).float()
    >>> along_the_edge = torch.stack([1 - inside, inside], dim=1).clamp_min(1e-9).log()
    >>> on_the_edge = smoothness_loss(along_the_edge, images)
    >>> beside_it = smoothness_loss(along_the_edge.roll(2, dims=3), images)
    >>> bool(on_the_edge < 0.1 * beside_it)
    True
    """
    truth = log_truth.exp()
    spread = _usual_difference(images)
    differing, weights = truth.new_zeros(()), truth.new_zeros(())
    for direction, step in product(_half_of_the_directions(images.ndim - 2), NEIGHBOUR_DISTANCES):
        here, there = _overlap(direction, step)
        with torch.no_grad():
            weight = ((images[here] - images[there]) ** 2).sum(dim=1).div_(-2 * spread).exp_()
        differing = differing + (weight * (1 - (truth[here] * truth[there]).sum(dim=1))).sum()
        weights = weights + weight.sum()
    return differing / weights.clamp_min(1e-9)


def _usual_difference(images: Tensor) -> Tensor:
    """The mean squared difference of direct neighbours in each image: (batch, 1, …), never 0."""
    squares = []
    for axis in range(images.ndim - 2):
        direction = tuple(int(axis == other) for other in range(images.ndim - 2))
        here, there = _overlap(direction, 1)
        squares.append(((images[here] - images[there]) ** 2).sum(dim=1).flatten(1).mean(dim=1))
    mean = torch.stack(squares).nanmean(dim=0).clamp_min(1e-6)
    return mean.view(-1, *[1] * (images.ndim - 2))


def _half_of_the_directions(dims: int) -> Iterator[tuple[int, ...]]:
    """Along every axis and diagonal; of two opposite directions, the one whose first step goes forward."""
    return (direction for direction in product((-1, 0, 1), repeat=dims) if direction > (0,) * dims)


def _overlap(direction: tuple[int, ...], step: int) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """The parts (batch, channels, *spatial) of an image and of itself, shifted, that lie on each other."""
    shift = [sign * step for sign in direction]
    here = [slice(max(by, 0), min(by, 0) or None) for by in shift]
    there = [slice(max(-by, 0), -max(by, 0) or None) for by in shift]
    every = (slice(None), slice(None))
    return (*every, *here), (*every, *there)
