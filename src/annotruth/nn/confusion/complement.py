"""Negative drawings: a matrix of errors, and behind it one that says which class a pixel is called *not* to be.

Somebody who takes a pixel of true class i for class k, with probability A[i, k], marks it as "not j" with probability
M[k, j]. M is 0 on the diagonal: nobody says that a pixel is not what they take it for.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from annotruth.nn.confusion.base import Confusion, IdentityConfusion, in_blocks, one_pixel_axis
from annotruth.nn.confusion.pixel import PixelConfusion, diagonal_of, log_row_probabilities
from annotruth.nn.labels import class_index, is_labelled

LOGIT_SCALE = 30.0
"""The logits of M are its parameters times this: few as they are, they must keep pace with networks at one rate."""


class Complement(nn.Module):
    """M: which class somebody says a pixel is *not*, by the class they take it for; [taken for, said not to be].

    Examples
    --------
    >>> Complement(classes=3)().exp()
    tensor([[0.0000, 0.5000, 0.5000],
            [0.5000, 0.0000, 0.5000],
            [0.5000, 0.5000, 0.0000]])
    """

    def __init__(self, classes: int, learnt: bool = False) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(classes, classes), requires_grad=learnt)

    def forward(self) -> Tensor:
        """Logarithms (classes, classes), whose exponentials sum to 1 in each row."""
        itself = torch.eye(len(self.scores), dtype=torch.bool, device=self.scores.device)
        return (LOGIT_SCALE * self.scores).masked_fill(itself, -torch.inf).log_softmax(dim=1)


@dataclass
class NegativeConfusion(Confusion):
    """Matrices of people whose labels say which class a pixel is not: the label's probability is (p · A · M)[label].

    Attributes
    ----------
    taken_for : A, what people take pixels for
    log_complement : log M (classes, classes), [taken for, said not to be]

    Examples
    --------
    >>> log_truth = torch.tensor([[0.7, 0.2, 0.1]]).log()
    >>> faithful = NegativeConfusion(IdentityConfusion(raters=1, classes=3), Complement(3)())
    >>> log_likelihood, _ = faithful.likelihood(log_truth, torch.tensor([[0]]))  # "it is not class 0"
    >>> round(log_likelihood.exp().item(), 4)  # (0.2 + 0.1) / 2
    0.15
    """

    taken_for: IdentityConfusion | PixelConfusion
    log_complement: Tensor

    def dense(self) -> Tensor:
        """The matrices A, without M."""
        return self.taken_for.dense()

    def _explain(self, log_truth: Tensor, labels: Tensor, row_weight: Tensor) -> tuple[Tensor, Tensor]:
        if isinstance(self.taken_for, IdentityConfusion):
            log_likelihood = (log_truth[:, None] + self._said(labels)).logsumexp(dim=2)
            log_likelihood = log_likelihood.masked_fill(~is_labelled(labels, log_truth.shape[1]), 0)
            return log_likelihood, row_weight.sum(dim=1, keepdim=True).expand(labels.shape)
        scores = one_pixel_axis(self.taken_for.scores, 4)

        def explain(log_truth: Tensor, scores: Tensor, labels: Tensor, row_weight: Tensor) -> tuple[Tensor, Tensor]:
            log_matrices = log_row_probabilities(scores, dim=3)
            taken_for = (log_truth[:, None, :, None] + log_matrices).logsumexp(dim=2)  # log (p · A)[k]
            log_likelihood = (taken_for + self._said(labels)).logsumexp(dim=2)
            trace = (row_weight.unsqueeze(1) * diagonal_of(log_matrices).exp()).sum(dim=2)
            return log_likelihood.masked_fill(~is_labelled(labels, log_truth.shape[1]), 0), trace

        return in_blocks(explain, log_truth, scores, labels, row_weight, per_pixel=scores.shape[:4].numel())

    def _said(self, labels: Tensor) -> Tensor:
        """log M[k, label] for every class k that a pixel may be taken for: (batch, raters, classes, pixels)."""
        classes = len(self.log_complement)
        return self.log_complement.t()[class_index(labels, classes)].movedim(-1, 2)

    def _summed_rows(self, truth: Tensor) -> Tensor:
        return self.taken_for._summed_rows(truth)
