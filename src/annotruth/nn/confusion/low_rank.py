"""Confusion matrices of low rank, for so many classes that one full matrix per pixel would not fit into memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from annotruth.nn.confusion.base import Confusion, in_blocks, one_pixel_axis, pixel_blocks
from annotruth.nn.labels import class_index, is_labelled


@dataclass
class LowRankConfusion(Confusion):
    """One matrix per pixel, A = rownorm(B₁·B₂ᵀ + s·I), never formed: a label needs two thin products only.

    It is written as what it means. At a pixel of class i the rater is faithful with probability ``stay[i]``; else, with
    probability ``mix[i, k]``, the rater draws a label from the k-th of a few patterns, whatever the class:
    A[i, j] = stay[i]·1[i = j] + Σ_k mix[i, k]·pattern[j, k].

    Even the thin factors are computed block by block, from features, and never exist for all pixels at once.

    Attributes
    ----------
    features : (batch, channels, *spatial)
    head : from a block of features (batch, channels, pixels) to scores (batch, raters·2·classes·rank, pixels). For each
        rater these are first the log-odds of mix against stay (classes, rank), then pattern's logits (classes, rank)
    raters, classes : how many of them

    Examples
    --------
    >>> scores = torch.tensor([-2.1972, -2.1972, 0.0, 0.0]).view(1, 4, 1)  # 1 : 9 against staying; an even pattern
    >>> LowRankConfusion(scores, torch.nn.Identity(), raters=1, classes=2).dense()[0, 0, :, :, 0]
    tensor([[0.9500, 0.0500],
            [0.0500, 0.9500]])
    """

    features: Tensor
    head: Callable[[Tensor], Tensor]
    raters: int
    classes: int

    def dense(self) -> Tensor:
        stay, mix, pattern = (part.exp() for part in self._log_parts(one_pixel_axis(self.features, 2)))
        matrices = torch.einsum("briks,brjks->brijs", mix, pattern)
        matrices = matrices + torch.diag_embed(stay.movedim(2, -1), dim1=2, dim2=3)
        return matrices.view(*matrices.shape[:4], *self.features.shape[2:])

    def _explain(self, log_truth: Tensor, labels: Tensor, row_weight: Tensor) -> tuple[Tensor, Tensor]:
        def explain(features: Tensor, log_truth: Tensor, labels: Tensor, row_weight: Tensor) -> tuple[Tensor, Tensor]:
            stay, mix, pattern = self._log_parts(features)
            observed = class_index(labels, self.classes).unsqueeze(2)
            stayed = log_truth.gather(1, observed.squeeze(2)).unsqueeze(2) + stay.gather(2, observed)
            used = _log_sum(log_truth[:, None, :, None] + mix, dim=2)  # p(the rater draws from pattern k)
            index = observed.unsqueeze(3).expand(-1, -1, 1, pattern.shape[3], -1)
            drawn = used + pattern.gather(2, index).squeeze(2)
            log_likelihood = _log_sum(torch.cat([stayed, drawn], dim=2), dim=2)
            diagonal = stay.exp() + (mix + pattern).exp().sum(dim=3)
            trace = (row_weight.unsqueeze(1) * diagonal).sum(dim=2)
            return log_likelihood.masked_fill(~is_labelled(labels, self.classes), 0), trace

        features = one_pixel_axis(self.features, 2)
        per_pixel = len(features) * self.raters * self.classes
        return in_blocks(explain, features, log_truth, labels, row_weight, per_pixel=per_pixel)

    def _summed_rows(self, truth: Tensor) -> Tensor:
        rows = truth.new_zeros(len(truth), self.raters, self.classes, self.classes)
        features = one_pixel_axis(self.features, 2)
        for weight, block in pixel_blocks(truth, features, per_pixel=len(truth) * self.raters * self.classes):
            stay, mix, pattern = (part.exp() for part in self._log_parts(block))
            drawn = torch.einsum("briks,brjks->brij", weight[:, None, :, None] * mix, pattern)
            rows = rows + drawn + torch.diag_embed(torch.einsum("bis,bris->bri", weight, stay))
        return rows

    def _log_parts(self, features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logarithms of stay (batch, raters, classes, pixels), and of mix and pattern (…, classes, rank, pixels)."""
        scores = self.head(features)
        mix, pattern = scores.view(len(scores), self.raters, 2, self.classes, -1, scores.shape[2]).unbind(dim=2)
        shares = F.pad(mix, (0, 0, 1, 0)).log_softmax(dim=3)  # staying, at odds of 1, and each pattern
        return shares[:, :, :, 0], shares[:, :, :, 1:], pattern.log_softmax(dim=2)


@dataclass
class GlobalLowRankConfusion(Confusion):
    """One matrix per rater of the form of :class:`LowRankConfusion`, the same everywhere: for very many classes.

    Attributes
    ----------
    scores : (raters, 2, classes, rank), first the log-odds of mix against stay, then pattern's logits

    Examples
    --------
    >>> scores = torch.tensor([-2.1972, -2.1972, 0.0, 0.0]).view(1, 2, 2, 1)  # 1 : 9 against staying; an even pattern
    >>> GlobalLowRankConfusion(scores).dense()[0, 0]
    tensor([[0.9500, 0.0500],
            [0.0500, 0.9500]])
    """

    scores: Tensor

    def dense(self) -> Tensor:
        stay, mix, pattern = (part.exp() for part in self._log_parts())
        return (torch.einsum("rik,rjk->rij", mix, pattern) + torch.diag_embed(stay))[None]

    def _explain(self, log_truth: Tensor, labels: Tensor, row_weight: Tensor) -> tuple[Tensor, Tensor]:
        stay, mix, pattern = self._log_parts()
        diagonal = stay.exp() + (mix + pattern).exp().sum(dim=2)
        trace = torch.einsum("ri,bis->brs", diagonal, row_weight)
        # p(the rater draws from pattern k): a matrix product, whose terms are no smaller than the smallest mix.
        used = torch.einsum("bis,rik->brsk", log_truth.exp(), mix.exp())
        labelled = is_labelled(labels, stay.shape[1])
        if labels.shape[2] == 1:  # one label per item: look at the given ones only, as of many raters few answer
            item, rater, pixel = labelled.nonzero(as_tuple=True)
            observed = labels[item, rater, pixel].long()
            stayed = log_truth[item, observed, pixel] + stay[rater, observed]
            explained = _stayed_or_drawn(stayed, used[item, rater, pixel], pattern[rater, observed])
            return log_truth.new_zeros(labels.shape).index_put((item, rater, pixel), explained), trace
        rater = torch.arange(len(stay), device=stay.device).view(1, -1, 1)
        observed = class_index(labels, stay.shape[1])
        stayed = log_truth.gather(1, observed) + stay[rater, observed]
        return _stayed_or_drawn(stayed, used, pattern[rater, observed]).masked_fill(~labelled, 0), trace

    def _summed_rows(self, truth: Tensor) -> Tensor:
        return truth.sum(dim=2)[:, None, :, None] * self.dense()

    def _log_parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """Logarithms of stay (raters, classes), and of mix and pattern (raters, classes, rank)."""
        mix, pattern = self.scores.unbind(dim=1)
        shares = F.pad(mix, (1, 0)).log_softmax(dim=2)  # staying, at odds of 1, and each pattern
        return shares[:, :, 0], shares[:, :, 1:], pattern.log_softmax(dim=1)


def low_rank_scores(classes: int, rank: int) -> Tensor:
    """Scores (2, classes, rank) of a low-rank matrix close to the identity, whatever the rank.

    The rater is faithful 98 times in 100; else gives any label, as likely as another.
    """
    return torch.stack([torch.full((classes, rank), -4 - math.log(rank)), torch.zeros(classes, rank)])


def _stayed_or_drawn(stayed: Tensor, used: Tensor, pattern: Tensor) -> Tensor:
    """log(exp(stayed) + Σ_k used_k · exp(pattern_k)), from (...), (..., rank) and (..., rank)."""
    drawn = used.clamp_min(torch.finfo(used.dtype).tiny).log() + pattern
    return _log_sum(torch.cat([stayed.unsqueeze(-1), drawn], dim=-1), dim=-1)


def _log_sum(logs: Tensor, dim: int) -> Tensor:
    """log Σ exp, twice as fast as PyTorch's, for sums that are not 0."""
    largest = logs.detach().amax(dim, keepdim=True)
    return (logs - largest).exp().sum(dim).log() + largest.squeeze(dim)
