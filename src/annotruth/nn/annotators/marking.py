"""Marked pixels are a biased sample: of some classes people mark a larger share than of others, and not all rightly."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from annotruth.nn.confusion import one_pixel_axis
from annotruth.nn.labels import class_index, decay_and_add_, is_labelled, one_hot, sum_over_processes

COUNTS_KEPT = 0.97
"""Share of what was counted that remains when another batch is counted."""
SMOOTHING = 0.01
"""Chance of every class besides what was counted: without any, no mark could ever be found to be wrong."""


class Marking(nn.Module):
    """How often pixels of each class are marked, and as what, counted against the network's estimate of all pixels.

    A network that learns from marks alone learns what is true of *marked* pixels, p_i · rate_i up to a factor. Strokes
    on the background reach far, those on an object stay clear of its border: uncorrected, borders would go to the
    background. Marks are counted by what they most likely are, p_i · A[i, mark] up to a factor (a step of EM): where
    masks or other people's marks tell the network better, errors A are found.

    Examples
    --------
    >>> marking = Marking(raters=1, classes=2)
    >>> half = torch.tensor([[[1.0, 1.0, 1e-9, 1e-9], [1e-9, 1e-9, 1.0, 1.0]]]).log()  # two pixels of each class
    >>> for _ in range(300):
    ...     marking.count(half, torch.tensor([[[0, 0, 1, 255]]]), torch.full((1, 1, 4), 255), torch.eye(2).log())
    >>> marking.of_marked(torch.tensor([[0.5, 0.5]]).log()).exp().round(decimals=2)  # twice as many marks on class 0
    tensor([[0.6700, 0.3300]])
    """

    marks: Tensor
    pixels: Tensor

    def __init__(self, raters: int, classes: int) -> None:
        super().__init__()
        self.register_buffer("marks", torch.eye(classes).repeat(raters, 1, 1))
        self.register_buffer("pixels", torch.ones(classes))

    @torch.no_grad()
    def count(self, log_truth: Tensor, positive: Tensor, negative: Tensor, log_complement: Tensor) -> None:
        """Count marks of what is there and of what is not, and pixels of each class.

        Parameters
        ----------
        log_truth : (batch, classes, *spatial);  positive, negative : (batch, raters, *spatial)
        log_complement : log M (classes, classes), [taken for, said not to be]
        """
        classes, errors = log_truth.shape[1], self.errors()
        log_truth, positive, negative = (one_pixel_axis(part, 2) for part in (log_truth, positive, negative))
        marked = self.of_marked(log_truth).exp()
        explained = torch.einsum("bis,rik->brks", marked, errors)
        # What each mark takes its pixel for: a class, or by M one of those that are not said not to be there.
        as_class = one_hot(positive, classes, dim=2)
        said = log_complement.exp().t()[class_index(negative, classes)].movedim(-1, 2) * explained
        as_other = said / said.sum(dim=2, keepdim=True).clamp_min(1e-9) * is_labelled(negative, classes)[:, :, None]
        marks = errors * torch.einsum("bis,brks->rik", marked, (as_class + as_other) / explained)
        drawn = is_labelled(positive, classes).flatten(1).any(1) | is_labelled(negative, classes).flatten(1).any(1)
        pixels = (log_truth.exp() * drawn[:, None, None]).sum(dim=(0, 2))
        decay_and_add_(self.marks, sum_over_processes(marks), COUNTS_KEPT)
        decay_and_add_(self.pixels, sum_over_processes(pixels), COUNTS_KEPT)

    def errors(self) -> Tensor:
        """What each rater takes marked pixels for: (raters, classes, classes), [true, taken for], rows sum to 1."""
        share = (self.marks + 1e-6 * torch.eye(len(self.pixels), device=self.marks.device)).clamp_min(1e-9)
        share = share / share.sum(dim=2, keepdim=True)
        return share * (1 - SMOOTHING * len(self.pixels)) + SMOOTHING

    def of_marked(self, log_truth: Tensor) -> Tensor:
        """Log-probabilities (batch, classes, *spatial) of the class of a pixel, given that it is marked."""
        rates = (self.marks.sum(dim=(0, 2)).clamp_min(1e-3) / self.pixels.clamp_min(1e-3)).log()
        return (log_truth + rates.view(1, -1, *[1] * (log_truth.ndim - 2))).log_softmax(dim=1)
