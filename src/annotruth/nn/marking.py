"""Marked pixels are a biased sample: of some classes people mark a larger share than of others."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from annotruth.nn.blocks import one_pixel_axis
from annotruth.nn.labels import is_given
from annotruth.nn.together import sum_over_processes

MEMORY = 0.97
"""How much of what was counted remains when another batch is counted."""


class MarkingRates(nn.Module):
    """How often pixels of each class are marked, counted against the network's estimate of all pixels.

    A network that learns from marks alone learns what is true of *marked* pixels, p_i · rate_i up to a factor. Strokes
    on the background reach far, those on an object stay clear of its border: uncorrected, borders would go to the
    background.

    Examples
    --------
    >>> rates = MarkingRates(classes=2)
    >>> half = torch.tensor([[[1.0, 1.0, 1e-9, 1e-9], [1e-9, 1e-9, 1.0, 1.0]]]).log()  # two pixels of each class
    >>> for _ in range(300):
    ...     rates.count(half, torch.tensor([[[0, 0, 1, 255]]]), torch.full((1, 1, 4), 255))
    >>> rates.of_marked(torch.tensor([[0.5, 0.5]]).log()).exp().round(decimals=2)  # twice as many marks on class 0
    tensor([[0.6700, 0.3300]])
    """

    marks: Tensor
    pixels: Tensor

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.register_buffer("marks", torch.ones(classes))
        self.register_buffer("pixels", torch.ones(classes))

    @torch.no_grad()
    def count(self, log_truth: Tensor, positive: Tensor, negative: Tensor) -> None:
        """Count marks of what is there and of what is not, (batch, raters, *spatial) each, and pixels of each class."""
        classes = log_truth.shape[1]
        log_truth, positive, negative = (one_pixel_axis(part, 2) for part in (log_truth, positive, negative))
        marks = torch.stack([(positive == number).sum() for number in range(classes)]).to(log_truth)
        for number in range(classes):
            said_not = (negative == number).sum(dim=1).to(log_truth)
            others = self.of_marked(log_truth).index_fill(1, torch.tensor([number], device=marks.device), -torch.inf)
            marks += torch.einsum("bis,bs->i", others.softmax(dim=1), said_not)
        drawn = is_given(positive, classes).flatten(1).any(1) | is_given(negative, classes).flatten(1).any(1)
        pixels = (log_truth.exp() * drawn[:, None, None]).sum(dim=(0, 2))
        marks, pixels = sum_over_processes(torch.stack([marks, pixels]))
        self.marks.mul_(MEMORY).add_(marks)
        self.pixels.mul_(MEMORY).add_(pixels)

    def of_marked(self, log_truth: Tensor) -> Tensor:
        """Log-probabilities (batch, classes, *spatial) of the class of a pixel, given that it is marked."""
        rates = (self.marks.clamp_min(1e-3) / self.pixels.clamp_min(1e-3)).log()
        return (log_truth + rates.view(1, -1, *[1] * (log_truth.ndim - 2))).log_softmax(dim=1)
