"""How far a mask and the network's own lie on each other."""

from __future__ import annotations

import torch
from torch import Tensor

from annotruth.nn.labels import is_labelled, one_hot

SMOOTH = 1.0
"""Pixels added to overlap and areas, so that a class that is nowhere to be seen has a slope."""


def dice_loss(log_truth: Tensor, labels: Tensor) -> Tensor:
    """One minus the soft Dice of foreground classes, each over all pixels of the batch that are labelled.

    Small structures count as much as large ones, which they do not in a likelihood: beside that, it is what networks
    for segmentation are mostly trained by (nnU-Net).

    Parameters
    ----------
    log_truth : (batch, classes, *spatial) log-probabilities
    labels : (batch, *spatial) uint8, 255 = not labelled; class 0 is the background

    Examples
    --------
    >>> import torch
    >>> certain = torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]]).clamp_min(1e-9).log()
    >>> dice_loss(certain, torch.tensor([[0, 1, 1]], dtype=torch.uint8)).item()
    0.0
    >>> round(dice_loss(certain, torch.tensor([[0, 1, 0]], dtype=torch.uint8)).item(), 3)  # 1 - (2 + 1) / (3 + 1)
    0.25
    """
    classes = log_truth.shape[1]
    truth = log_truth.exp() * is_labelled(labels, classes).unsqueeze(1)
    given = one_hot(labels, classes)
    return soft_dice_loss(truth, given)


def dice_loss_of_raters(log_drawings: Tensor, labels: Tensor) -> Tensor:
    """:func:`dice_loss` of each rater's masks, on average over those raters who labelled anything; 0 if nobody did.

    Parameters
    ----------
    log_drawings : (batch, raters, classes, *spatial) log-probabilities of what each rater draws
    labels : (batch, raters, *spatial) uint8, 255 = not labelled

    Examples
    --------
    >>> import torch
    >>> certain = torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]]).clamp_min(1e-9).log()
    >>> labels = torch.tensor([[[0, 1, 1], [0, 1, 0], [255, 255, 255]]], dtype=torch.uint8)
    >>> round(dice_loss_of_raters(certain[:, None].expand(1, 3, 2, 3), labels).item(), 3)  # of 0 and 0.25
    0.125
    """
    present = is_labelled(labels, log_drawings.shape[2]).flatten(2).any(dim=2).any(dim=0)
    losses = [dice_loss(log_drawings[:, rater], labels[:, rater]) for rater in present.nonzero().flatten().tolist()]
    return torch.stack(losses).mean() if losses else log_drawings.sum() * 0


def soft_dice_loss(truth: Tensor, given: Tensor) -> Tensor:
    """One minus the soft Dice of two arrays (batch, classes, *spatial) of probabilities, 0 where nothing is known."""
    over = (0, *range(2, truth.ndim))
    overlap, area = (truth * given).sum(over), (truth + given).sum(over)
    return 1 - ((2 * overlap + SMOOTH) / (area + SMOOTH))[1:].mean()
