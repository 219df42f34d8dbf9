"""Where borders lie by everybody's drawings, once it is known how much too large or too small each rater draws.

A rater who draws all objects a pixel too large is worth as much as one who draws them right, as soon as this is known.
How much larger than the others one draws can be counted. How much larger all of them draw than the truth cannot, but
of labellings that differ in nothing else, the true one foretells all drawings best (``methods.anchor.foretelling``).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from annotruth.nn.labels import is_labelled

REACH = 4
"""Pixels from a border within which distances are told; a rater whose borders lie farther off is left out."""
CLEARLY = 0.25
"""Pixels by which borders must lie apart for one to lie beyond the other."""
SHIFTS = tuple(step / 2 for step in range(-4, 5))
"""Pixels by which the true borders may lie outside of those that are drawn in the middle; below 0: within them."""


def border_distances(labels: Tensor, classes: int) -> Tensor:
    """How far each pixel is from the border of each foreground class, less than nothing within it.

    Parameters
    ----------
    labels : (batch, *spatial) class numbers, 255 = unknown

    Returns
    -------
    (batch, classes - 1, *spatial), at most ``REACH`` away from 0; half a pixel beside a border

    Examples
    --------
    >>> border_distances(torch.tensor([[0, 0, 0, 1, 1, 0, 0]]), classes=2)
    tensor([[[ 2.5000,  1.5000,  0.5000, -0.5000, -0.5000,  0.5000,  1.5000]]])
    """
    inside = torch.stack([labels == number for number in range(1, classes)], dim=1)
    to_inside, to_outside = _distance(torch.cat([inside, ~inside])).chunk(2)
    return torch.where(inside, 0.5 - to_outside, to_inside - 0.5).clamp(-REACH, REACH)


def _distance(there: Tensor) -> Tensor:
    """Distance (batch, channels, *spatial) to the nearest pixel that is there, exact up to the reach."""
    far = float((2 * REACH) ** 2)
    squared = torch.where(there, 0.0, far)
    for axis in range(2, there.ndim):  # the nearest along one axis, then of those along the next: squares add up
        length, padding = there.shape[axis], [0] * (2 * (there.ndim - axis))
        padding[-2:] = [REACH, REACH]
        padded = F.pad(squared, padding, value=far)
        moved = (padded.narrow(axis, REACH + step, length) + step**2 for step in range(-REACH, REACH + 1))
        squared = next(moved)
        for each in moved:
            squared = torch.minimum(squared, each)
    return squared.sqrt()


def rater_offsets(labels: Sequence[Tensor], references: Sequence[Tensor], classes: int) -> Tensor:
    """How far raters' borders lie from those of a reference; negative: outside of it, they draw too much.

    Parameters
    ----------
    labels : (batch, raters, *spatial), 255 = missing, of each batch
    references : (batch, *spatial) of each batch, 255 = unknown

    Returns
    -------
    (raters, classes - 1) pixels: the mean of the middle half of those within reach; inf of a rater who mostly has no
    border near it

    Examples
    --------
    >>> one, two = torch.tensor([0, 0, 1, 1, 1, 0, 0]), torch.tensor([0, 1, 1, 1, 1, 1, 0])
    >>> rater_offsets([torch.stack([one, two])[None]], [one[None]], classes=2)
    tensor([[ 0.],
            [-1.]])
    """
    at_border = [border_distances(each, classes).abs() <= 0.5 for each in references]
    offsets = torch.full((labels[0].shape[1], classes - 1), torch.inf)
    for rater, of_classes in enumerate(offsets):
        drawn = [each[:, rater] for each in labels]
        given = [is_labelled(each, classes).unsqueeze(1) & border for each, border in zip(drawn, at_border)]
        distances = [border_distances(each, classes) for each in drawn]
        for number in range(classes - 1):
            found = torch.cat([far[:, number][at[:, number]] for far, at in zip(distances, given)])
            near = found[found.abs() < REACH].sort().values
            if len(found) and 2 * len(near) >= len(found):
                of_classes[number] = near[len(near) // 4 : len(near) - len(near) // 4].mean()
    return offsets


def beyond_everybody(offsets: Tensor) -> Tensor:
    """Which labellings (labellings,) have borders beyond everybody's: nobody drew less, or nobody drew more.

    Parameters
    ----------
    offsets : (labellings, raters, classes - 1) of raters' borders from those of a labelling; inf of who is left out

    Examples
    --------
    >>> beyond_everybody(torch.tensor([[[0.5], [-1.0]], [[-0.5], [-2.0]], [[0.2], [0.9]], [[torch.inf], [0.9]]]))
    tensor([False,  True, False,  True])
    """
    mean = offsets.mean(dim=2)  # inf where any class is left out
    less, more = (mean > CLEARLY) | mean.isinf(), (mean < -CLEARLY) | mean.isinf()
    return (less.all(dim=1) | more.all(dim=1)) & ~mean.isinf().all(dim=1)


def drawn_distances(labels: Tensor, classes: int) -> Tensor:
    """Distances (batch, raters, classes - 1, *spatial) from borders of labels (batch, raters, *spatial).

    nan where somebody did not label a pixel.
    """
    distances = border_distances(labels.flatten(0, 1), classes).unflatten(0, labels.shape[:2])
    return torch.where(is_labelled(labels, classes).unsqueeze(2), distances, torch.nan)


def in_the_middle(apart: Tensor) -> Tensor:
    """The median (batch, ...) of what is known of several (batch, raters, ...); nan where nothing is.

    Examples
    --------
    >>> in_the_middle(torch.tensor([[1.0, 2.0, 5.0, torch.nan], [torch.nan, torch.nan, 4.0, 1.0]]))
    tensor([2.0000, 2.5000])
    """
    ordered = apart.sort(dim=1).values  # unknown ones last
    known = (~ordered.isnan()).sum(dim=1, keepdim=True)
    middle = [ordered.gather(1, place.clamp(0, apart.shape[1] - 1)) for place in ((known - 1) // 2, known // 2)]
    return ((middle[0] + middle[1]) / 2).squeeze(1)


def within(distances: Tensor) -> Tensor:
    """Classes (batch, *spatial) uint8 of pixels that lie within a border (batch, classes - 1, *spatial); else 0.

    255 where no distance is known.

    Examples
    --------
    >>> within(torch.tensor([[[0.5, -0.5, -1.5, torch.nan]]]))
    tensor([[  0,   1,   1, 255]], dtype=torch.uint8)
    """
    nearest, number = distances.nan_to_num(torch.inf).min(dim=1)
    classes = torch.where(nearest < 0, number + 1, 0).to(torch.uint8)
    return classes.masked_fill(distances.isnan().all(dim=1), 255)
