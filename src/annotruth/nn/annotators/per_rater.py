"""Annotator models with one matrix per rater, the same at all pixels.

Those that learn start near the identity (everybody is right), because that start is what keeps classes from swapping.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from annotruth.nn.annotators.base import AnnotatorModel
from annotruth.nn.confusion import (
    Confusion,
    GlobalConfusion,
    GlobalLowRankConfusion,
    IdentityConfusion,
    identity_scores,
)
from annotruth.nn.confusion.low_rank import low_rank_scores
from annotruth.nn.confusion.pixel import log_row_probabilities

MIN_PROBABILITY = 1e-3
"""No entry of a matrix to start from is smaller, or gradients could hardly raise it again."""


class IdentityAnnotators(AnnotatorModel):
    """Raters who are always right: labels are taken at their word.

    Examples
    --------
    >>> IdentityAnnotators(raters=3, classes=2)(torch.zeros(1, 1, 8, 8)).dense().shape
    torch.Size([1, 3, 2, 2])
    """

    def __init__(self, raters: int, classes: int) -> None:
        super().__init__()
        self.raters, self.classes = raters, classes

    def forward(self, images: Tensor, raters: Tensor | None = None) -> Confusion:
        """Matrices of all raters, or of some (their positions)."""
        return IdentityConfusion(self.raters if raters is None else len(raters), self.classes, images.device)


class GlobalAnnotators(AnnotatorModel):
    """One learnt matrix per rater.

    Examples
    --------
    >>> GlobalAnnotators(raters=1, classes=2)(torch.zeros(1, 1, 8, 8)).dense()[0, 0].detach()
    tensor([[0.9949, 0.0051],
            [0.0051, 0.9949]])
    """

    def __init__(self, raters: int, classes: int) -> None:
        super().__init__()
        self.scores = nn.Parameter(identity_scores(classes).repeat(raters, 1, 1))

    def forward(self, images: Tensor, raters: Tensor | None = None) -> Confusion:
        """Matrices of all raters, or of some (their positions), whose gradients then are sparse."""
        log_matrices = log_row_probabilities(rater_rows(self.scores, raters), dim=2)
        return GlobalConfusion(log_matrices.exp(), log_matrices)

    @torch.no_grad()
    def set_matrices(self, matrices: Tensor) -> None:
        """Start from these matrices (raters, classes, classes) instead; entries of 0 are raised a little."""
        # The inverse of softplus; row sums stay as they are, so that learning goes on at the usual pace.
        weights = matrices.clamp_min(MIN_PROBABILITY).to(self.scores) * F.softplus(torch.tensor(1.0))
        self.scores.copy_(weights.expm1().log())


class KnownAnnotators(AnnotatorModel):
    """One matrix per rater that gradients do not change: known beforehand, or counted now and then.

    Examples
    --------
    >>> KnownAnnotators(raters=3, classes=2)(torch.zeros(1, 1, 8, 8)).dense().shape
    torch.Size([1, 3, 2, 2])
    """

    matrices: Tensor

    def __init__(self, raters: int, classes: int) -> None:
        super().__init__()
        self.register_buffer("matrices", torch.eye(classes).repeat(raters, 1, 1))

    def forward(self, images: Tensor, raters: Tensor | None = None) -> Confusion:
        """Matrices of all raters, or of some (their positions)."""
        return GlobalConfusion(self.matrices if raters is None else self.matrices[raters])


class GlobalLowRankAnnotators(AnnotatorModel):
    """One learnt matrix per rater of low rank plus a share of the identity: for very many classes.

    Examples
    --------
    >>> GlobalLowRankAnnotators(raters=3, classes=1000)(torch.zeros(1, 8)).dense().shape
    torch.Size([1, 3, 1000, 1000])
    """

    def __init__(self, raters: int, classes: int, rank: int = 1) -> None:
        super().__init__()
        self.scores = nn.Parameter(low_rank_scores(classes, rank).repeat(raters, 1, 1, 1))

    def forward(self, images: Tensor, raters: Tensor | None = None) -> Confusion:
        """Matrices of all raters, or of some (their positions), whose gradients then are sparse."""
        return GlobalLowRankConfusion(rater_rows(self.scores, raters))


def rater_rows(table: Tensor, raters: Tensor | None) -> Tensor:
    """Rows of a table (raters, ...): of all raters, or of some, each named once.

    The gradient of some rows is sparse, so that a step costs what its own raters cost, however many others there are.
    Devices that train together cannot exchange such gradients; there it is dense.

    Examples
    --------
    >>> table = torch.zeros(1000, 2, 2, requires_grad=True)
    >>> rater_rows(table, torch.tensor([7, 3])).sum().backward()
    >>> table.grad.coalesce().indices()
    tensor([[3, 7]])
    """
    if raters is None:
        return table
    together = torch.distributed.is_available() and torch.distributed.is_initialized()
    return table[raters] if together else _Rows.apply(table, raters)


class _Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, raters: Tensor) -> Tensor:
        ctx.save_for_backward(raters)
        ctx.size = table.shape
        return table[raters]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (raters,) = ctx.saved_tensors
        return torch.sparse_coo_tensor(raters[None], gradient, ctx.size, check_invariants=False), None
