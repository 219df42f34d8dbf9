"""Confusion matrices as a network gives them: identity, one per rater, one per pixel, or of low rank.

Each kind answers the same four questions, so that an objective need not know which it has:
how likely are the labels, how right is the rater for each true class, what is the average matrix over an item, and what
are the matrices themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from annotruth.nn.likelihood import observed_log_likelihood
from annotruth.validation import MISSING_PIXEL


class Confusion(ABC):
    """Confusion matrices [true, observed] of every rater for a batch of items."""

    @abstractmethod
    def likelihood(self, log_truth: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Log-likelihood (batch, raters, *spatial) of labels, 0 where missing, and the matrices' diagonals.

        The diagonals broadcast to (batch, raters, classes, *spatial).
        """

    @abstractmethod
    def dense(self) -> Tensor:
        """The matrices, broadcastable to (batch, raters, classes, classes, *spatial)."""

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
        weight = truth[:, None, :, None]
        axes = tuple(range(4, weight.ndim))
        rows = (weight * self.dense()).sum(dim=axes) if axes else weight * self.dense()
        return rows, weight.sum(dim=axes) if axes else weight


@dataclass
class IdentityConfusion(Confusion):
    """Everybody is taken at their word."""

    raters: int
    classes: int

    def likelihood(self, log_truth: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        given = labels != MISSING_PIXEL
        return log_truth.gather(1, labels.long() * given) * given, torch.ones_like(log_truth[:, None])

    def dense(self) -> Tensor:
        return torch.eye(self.classes).expand(1, self.raters, -1, -1)


@dataclass
class GlobalConfusion(Confusion):
    """One matrix per rater, the same everywhere.

    ``matrices`` is (raters, classes, classes), or (batch, raters, classes, classes) where each item has its own.
    """

    matrices: Tensor

    def likelihood(self, log_truth: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        matrices = self.matrices if self.matrices.ndim == 4 else self.matrices[None]
        # Entries of A are positive and p sums to 1, so the product cannot underflow: no clipping is needed.
        observed = torch.einsum("bis,brij->brjs", log_truth.flatten(2).exp(), matrices.expand(len(labels), -1, -1, -1))
        given = labels != MISSING_PIXEL
        picked = observed.gather(2, (labels.long() * given).flatten(2).unsqueeze(2)).squeeze(2)
        log_likelihood = picked.log().view(labels.shape) * given
        diagonal = matrices.diagonal(dim1=2, dim2=3)
        return log_likelihood, diagonal.reshape(*diagonal.shape, *[1] * (labels.ndim - 2))

    def dense(self) -> Tensor:
        return self.matrices if self.matrices.ndim == 4 else self.matrices[None]

    def mean_rows(self, truth: Tensor) -> tuple[Tensor, Tensor]:
        weight = truth.flatten(2).sum(dim=2)[:, None, :, None]
        return weight * self.dense(), weight


@dataclass
class PixelConfusion(Confusion):
    """One matrix per pixel: the row-normalised softplus of scores (batch, raters, classes, classes, *spatial)."""

    scores: Tensor

    def likelihood(self, log_truth: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        return observed_log_likelihood(log_truth, self.scores, labels)

    def dense(self) -> Tensor:
        weights = F.softplus(self.scores)
        return weights / weights.sum(dim=3, keepdim=True)


@dataclass
class LowRankConfusion(Confusion):
    """One matrix per pixel, A = rownorm(left · rightᵀ + identity · 1), never formed: two thin products instead.

    Attributes
    ----------
    left, right : (batch, raters, classes, rank, *spatial), non-negative
    identity : (batch, raters, *spatial), positive
    """

    left: Tensor
    right: Tensor
    identity: Tensor

    def likelihood(self, log_truth: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        row_sum = self._row_sum()
        share = log_truth.exp()[:, None] / row_sum  # p_i / rowsum_i
        given = labels != MISSING_PIXEL
        observed = (labels.long() * given).unsqueeze(2)
        through = (share.unsqueeze(3) * self.left).sum(dim=2)  # what reaches each of the few middle nodes
        index = observed.unsqueeze(3).expand(-1, -1, 1, self.right.shape[3], *labels.shape[2:])
        spread = (through * self.right.gather(2, index).squeeze(2)).sum(dim=2)
        stayed = share.gather(2, observed).squeeze(2) * self.identity
        diagonal = ((self.left * self.right).sum(dim=3) + self.identity.unsqueeze(2)) / row_sum
        return (spread + stayed).log() * given, diagonal

    def dense(self) -> Tensor:
        classes = self.left.shape[2]
        product = torch.einsum("brik...,brjk...->brij...", self.left, self.right)
        eye = torch.eye(classes, device=product.device, dtype=product.dtype)
        eye = eye.view(classes, classes, *[1] * (product.ndim - 4))
        return (product + self.identity[:, :, None, None] * eye) / self._row_sum().unsqueeze(3)

    def mean_rows(self, truth: Tensor) -> tuple[Tensor, Tensor]:
        share = (truth[:, None] / self._row_sum()).flatten(3)
        rows = torch.einsum("bris,briks,brjks->brij", share, self.left.flatten(4), self.right.flatten(4))
        stayed = (share * self.identity.flatten(2).unsqueeze(2)).sum(dim=3)
        return rows + torch.diag_embed(stayed), truth.flatten(2).sum(dim=2)[:, None, :, None]

    def _row_sum(self) -> Tensor:
        return (self.left * self.right.sum(dim=2, keepdim=True)).sum(dim=3) + self.identity.unsqueeze(2)
