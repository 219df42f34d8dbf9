"""Confusion matrices per rater and pixel that vary from drawing to drawing, at all pixels of a drawing together."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from annotruth.nn.confusion.base import Confusion
from annotruth.nn.confusion.pixel import PixelConfusion, log_row_probabilities
from annotruth.nn.labels import is_labelled


@dataclass
class CorrelatedConfusion(Confusion):
    """Scores of matrices that are Gaussian with covariance F·Fᵀ: a drawing's errors come together.

    Whether a rater errs at one pixel says whether the same drawing errs at others. So the likelihood of a drawing is
    the mean over the Gaussian of the product over its pixels; only of single pixels it is that of the mean matrix.

    Attributes
    ----------
    scores : (batch, raters, classes, classes, *spatial) means, of which matrices are the row-normalised softplus
    factors : (batch, raters, rank, classes, classes, *spatial) by which scores move together
    points : (draws, batch or 1, raters or 1, rank) standard normal numbers over which means are taken

    Examples
    --------
    >>> scores, factors = torch.zeros(1, 1, 2, 2, 3), torch.zeros(1, 1, 1, 2, 2, 3)
    >>> factors[:, :, 0, :, 1] = 4.0  # either all is said to be the second class, or nothing is
    >>> confusion = CorrelatedConfusion(scores, factors, torch.tensor([2.0, -2.0]).view(2, 1, 1, 1))
    >>> log_truth = torch.full((1, 2, 3), 0.5).log()
    >>> together, mixed = (confusion.loss(log_truth, torch.tensor([[said]]))[0] for said in ([1, 1, 1], [1, 0, 1]))
    >>> bool(together < mixed)
    True
    """

    scores: Tensor
    factors: Tensor
    points: Tensor

    def at(self, points: Tensor) -> Tensor:
        """Scores for points (batch or 1, raters or 1, rank)."""
        shape = (*points.shape, *[1] * (self.factors.ndim - 3))
        return self.scores + (self.factors * points.view(shape)).sum(dim=2)

    def drawn(self, log_truth: Tensor, rater: int, point: Tensor) -> Tensor:
        """Log-probabilities (batch, classes, *spatial) of what a rater says in one drawing, that of a point (rank,)."""
        one = CorrelatedConfusion(self.scores[:, [rater]], self.factors[:, [rater]], self.points)
        logs = log_row_probabilities(one.at(point.view(1, 1, -1))[:, 0], dim=2)
        return (log_truth.unsqueeze(2) + logs).logsumexp(dim=1)

    def dense(self) -> Tensor:
        return sum((each.dense() for each in self._each()), torch.zeros(())) / len(self.points)

    def loss(
        self, log_truth: Tensor, labels: Tensor, trace_weight: float = 0.0, row_weight: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """As of any confusion, with the likelihood of whole drawings added to that of single pixels.

        The likelihood that is given beside the loss is that of whole drawings. To it, a mood that nobody is ever in
        costs as little as a coin's toss, once for all pixels of a drawing; single pixels tell how often there is which.
        """
        row_weight = None if row_weight is None else row_weight.detach()
        labelled = is_labelled(labels, log_truth.shape[1])
        count = torch.count_nonzero(labelled).clamp_min(1)
        logs, traces = zip(*(each.likelihood(log_truth, labels, row_weight) for each in self._each()))
        pixels = torch.stack(logs)
        of_drawings = -self._mean_of_logs(pixels.flatten(3).sum(dim=3)).sum() / count
        loss = (of_drawings - self._mean_of_logs(pixels).sum() / count) / 2
        if trace_weight != 0:
            loss = loss + trace_weight * (torch.stack(traces).mean(dim=0) * labelled).sum() / count
        return loss, of_drawings.detach()

    def _each(self) -> Iterator[PixelConfusion]:
        return (PixelConfusion(self.at(points)) for points in self.points)

    def _mean_of_logs(self, logs: Tensor) -> Tensor:
        """The logarithm of the mean over draws, the first axis, of what logarithms are given of."""
        return logs.logsumexp(dim=0) - math.log(len(self.points))

    def _explain(self, log_truth: Tensor, labels: Tensor, row_weight: Tensor) -> tuple[Tensor, Tensor]:
        flat = CorrelatedConfusion(self.scores.flatten(4), self.factors.flatten(5), self.points)
        logs, traces = zip(*(each._explain(log_truth, labels, row_weight) for each in flat._each()))
        return self._mean_of_logs(torch.stack(logs)), torch.stack(traces).mean(dim=0)

    def _summed_rows(self, truth: Tensor) -> Tensor:
        return torch.stack([each._summed_rows(truth) for each in self._each()]).mean(dim=0)
