"""Confusion matrices as a network gives them: identity, one per rater, or one per pixel.

Each kind answers the same questions, so that an objective need not know which it has: how likely are the labels and how
right the raters, what is the average matrix over an item, and what are the matrices themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from annotruth.nn.blocks import in_blocks, one_pixel_axis, pixel_blocks
from annotruth.nn.confusion.likelihood import full_weight, observed_log_likelihood
from annotruth.nn.confusion.rows import row_probabilities
from annotruth.nn.labels import class_index, is_labelled
from annotruth.nn.losses.pixel_loss import pixel_loss


class Confusion(ABC):
    """Confusion matrices [true, observed] of every rater for a batch of items.

    A kind of its own gives ``dense``, ``_explain`` and ``_summed_rows``; the latter two see one axis of pixels.
    """

    def likelihood(self, log_truth: Tensor, labels: Tensor, row_weight: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """How likely the labels are, and how right the raters.

        Parameters
        ----------
        log_truth : (batch, classes, *spatial) log-probabilities of the true class
        labels : (batch, raters, *spatial) integers; 255 or -1 = not labelled
        row_weight : (batch, classes, *spatial), how much each diagonal entry counts in the trace; all of them fully if
            not given

        Returns
        -------
        log_likelihood : (batch, raters, *spatial), 0 where not labelled
        trace : (batch, raters, *spatial), Σ_i row_weight_i · A[i, i]
        """
        row_weight = full_weight(log_truth) if row_weight is None else row_weight
        log_likelihood, trace = self._explain(*(one_pixel_axis(part, 2) for part in (log_truth, labels, row_weight)))
        return log_likelihood.view(labels.shape), trace.view(labels.shape)

    def loss(
        self, log_truth: Tensor, labels: Tensor, trace_weight: float = 0.0, row_weight: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Mean of ``trace_weight`` · trace − log-likelihood over the labels given, and of −log-likelihood alone.

        Both come from :meth:`likelihood`, where the parameters are explained. The row weights are taken as constants,
        and the second result as a figure to look at: no gradient flows into those or from this.
        """
        row_weight = full_weight(log_truth) if row_weight is None else row_weight.detach()
        given = is_labelled(labels, log_truth.shape[1])
        count = given.sum().clamp_min(1)
        log_likelihood, trace = self.likelihood(log_truth, labels, row_weight)
        negative = -log_likelihood.sum() / count
        if trace_weight == 0:
            return negative, negative.detach()
        return negative + trace_weight * (trace * given).sum() / count, negative.detach()

    def mean_rows(self, truth: Tensor) -> tuple[Tensor, Tensor]:
        """Truth-weighted sums of rows over an item, and their weights: numerator and denominator of the mean matrix.

        A row is identified only at pixels of its own class, so each pixel counts as far as it belongs to the class.

        Parameters
        ----------
        truth : (batch, classes, *spatial) probabilities

        Returns
        -------
        rows : (batch, raters, classes, classes);  weights : (batch, 1, classes, 1)
        """
        truth = one_pixel_axis(truth, 2)
        return self._summed_rows(truth), truth.sum(dim=2)[:, None, :, None]

    @abstractmethod
    def dense(self) -> Tensor:
        """The matrices: (batch, raters, classes, classes, *spatial).

        Without the spatial axes where all pixels share one matrix, and with a batch of 1 where all items do.
        """

    @abstractmethod
    def _explain(self, log_truth: Tensor, labels: Tensor, row_weight: Tensor) -> tuple[Tensor, Tensor]:
        """As :meth:`likelihood`."""

    @abstractmethod
    def _summed_rows(self, truth: Tensor) -> Tensor:
        """The first part of :meth:`mean_rows`."""


@dataclass
class IdentityConfusion(Confusion):
    """Everybody is taken at their word.

    Examples
    --------
    >>> log_truth = torch.tensor([[0.9, 0.1]]).log()
    >>> log_likelihood, trace = IdentityConfusion(raters=2, classes=2).likelihood(log_truth, torch.tensor([[0, 255]]))
    >>> log_likelihood.exp(), trace
    (tensor([[0.9000, 1.0000]]), tensor([[2., 2.]]))
    """

    raters: int
    classes: int
    device: torch.device | str | None = None

    def dense(self) -> Tensor:
        return torch.eye(self.classes, device=self.device).expand(1, self.raters, -1, -1)

    def _explain(self, log_truth: Tensor, labels: Tensor, row_weight: Tensor) -> tuple[Tensor, Tensor]:
        log_likelihood = log_truth.gather(1, class_index(labels, self.classes))
        log_likelihood = log_likelihood.masked_fill(~is_labelled(labels, self.classes), 0)
        return log_likelihood, row_weight.sum(dim=1, keepdim=True).repeat(1, self.raters, 1)

    def _summed_rows(self, truth: Tensor) -> Tensor:
        return torch.diag_embed(truth.sum(dim=2))[:, None].expand(-1, self.raters, -1, -1)


@dataclass
class GlobalConfusion(Confusion):
    """One matrix per rater, the same everywhere. A label that all rows call impossible has log-likelihood -inf.

    Attributes
    ----------
    matrices : (raters, classes, classes), or (batch, raters, classes, classes) where each item has its own
    log_matrices : their logarithms, if known better than from entries that may be too small to store

    Examples
    --------
    >>> log_truth = torch.tensor([[0.5, 0.5]]).log()
    >>> confusion = GlobalConfusion(torch.tensor([[[0.8, 0.2], [0.4, 0.6]]]))
    >>> log_likelihood, trace = confusion.likelihood(log_truth, torch.tensor([[1]]))
    >>> log_likelihood.exp(), trace
    (tensor([[0.4000]]), tensor([[1.4000]]))
    """

    matrices: Tensor
    log_matrices: Tensor | None = None

    def dense(self) -> Tensor:
        return self.matrices if self.matrices.ndim == 4 else self.matrices[None]

    def _explain(self, log_truth: Tensor, labels: Tensor, row_weight: Tensor) -> tuple[Tensor, Tensor]:
        if labels.shape[2] == 1 and self.matrices.ndim == 3:
            return self._explain_answers(log_truth, labels, row_weight)
        matrices = self.dense().expand(len(labels), -1, -1, -1)
        logs = _log(matrices) if self.log_matrices is None else self.log_matrices.expand(matrices.shape)
        diagonal = matrices.diagonal(dim1=2, dim2=3)

        def explain(log_truth: Tensor, labels: Tensor, row_weight: Tensor) -> tuple[Tensor, Tensor]:
            observed = class_index(labels, matrices.shape[3])
            columns = logs.gather(3, observed.unsqueeze(2).expand(-1, -1, matrices.shape[2], -1))
            log_likelihood = (log_truth.unsqueeze(1) + columns).logsumexp(dim=2)
            trace = torch.einsum("bri,bis->brs", diagonal, row_weight)
            return log_likelihood.masked_fill(~is_labelled(labels, matrices.shape[3]), 0), trace

        return in_blocks(explain, log_truth, labels, row_weight, per_pixel=diagonal.numel())

    def _explain_answers(self, log_truth: Tensor, labels: Tensor, row_weight: Tensor) -> tuple[Tensor, Tensor]:
        """As :meth:`_explain` for items of one pixel, looking at the given labels only: of many raters few answer."""
        item, rater, pixel = is_labelled(labels, self.matrices.shape[2]).nonzero(as_tuple=True)
        logs = _log(self.matrices) if self.log_matrices is None else self.log_matrices
        columns = logs[rater, :, labels[item, rater, pixel].long()]
        explained = (log_truth[item, :, pixel] + columns).logsumexp(dim=1)
        log_likelihood = log_truth.new_zeros(labels.shape).index_put((item, rater, pixel), explained)
        return log_likelihood, torch.einsum("ri,bis->brs", self.matrices.diagonal(dim1=1, dim2=2), row_weight)

    def _summed_rows(self, truth: Tensor) -> Tensor:
        return truth.sum(dim=2)[:, None, :, None] * self.dense()


@dataclass
class PixelConfusion(Confusion):
    """One matrix per pixel: the row-normalised softplus of scores (batch, raters, classes, classes, *spatial).

    Examples
    --------
    >>> PixelConfusion(torch.zeros(1, 1, 2, 2, 3)).dense()[0, 0, :, :, 0]
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """

    scores: Tensor

    def dense(self) -> Tensor:
        return row_probabilities(self.scores, dim=3)

    def _explain(self, log_truth: Tensor, labels: Tensor, row_weight: Tensor) -> tuple[Tensor, Tensor]:
        return observed_log_likelihood(log_truth, one_pixel_axis(self.scores, 4), labels, row_weight)

    def loss(
        self, log_truth: Tensor, labels: Tensor, trace_weight: float = 0.0, row_weight: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        row_weight = full_weight(log_truth) if row_weight is None else row_weight.detach()
        return pixel_loss(log_truth, self.scores, labels, trace_weight, row_weight)

    def _summed_rows(self, truth: Tensor) -> Tensor:
        rows = truth.new_zeros(self.scores.shape[:4])
        for weight, scores in pixel_blocks(truth, one_pixel_axis(self.scores, 4), per_pixel=rows.numel()):
            rows = rows + torch.einsum("bis,brijs->brij", weight, row_probabilities(scores, dim=3))
        return rows


def _log(matrices: Tensor) -> Tensor:
    """Logarithms of probabilities. An entry of 0 gives -inf, and no gradient rather than an infinite one."""
    impossible = matrices == 0
    return matrices.masked_fill(impossible, 1).log().masked_fill(impossible, -torch.inf)
