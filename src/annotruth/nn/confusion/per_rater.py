"""One confusion matrix per rater, the same at all pixels."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from annotruth.nn.confusion.base import Confusion, in_blocks
from annotruth.nn.labels import class_index, is_labelled


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


def _log(matrices: Tensor) -> Tensor:
    """Logarithms of probabilities. An entry of 0 gives -inf, and no gradient rather than an infinite one."""
    impossible = matrices == 0
    return matrices.masked_fill(impossible, 1).log().masked_fill(impossible, -torch.inf)
