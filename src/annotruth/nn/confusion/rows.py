"""From scores to rows of probabilities: softplus, row-normalised, exact however large or small the scores are."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

LOWEST = -60.0
"""Below this, softplus(x) is exp(x) to the last digit, and its logarithm is x itself."""


def is_ordinary(scores: Tensor) -> bool:
    """Whether :func:`in_range` can be spared. On a GPU, waiting for the answer would cost more than it spares."""
    return scores.device.type == "cpu" and bool(scores.amin() > LOWEST)


def in_range(scores: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Split scores into a part that softplus cannot underflow on, and how far they lie below it.

    Where all of a row lies far below 0, softplus is the exponential, and adding a constant to the row changes nothing
    once it is normalised: such rows are raised. What still lies below :data:`LOWEST` is too little to show in its row's
    sum, but an observed label may need to know how little.

    Returns
    -------
    rows : scores of at least :data:`LOWEST`, with the same row-normalised softplus
    below : 0 or less; an entry's probability is the one that ``rows`` gives, times exp(below)

    Examples
    --------
    >>> import torch
    >>> in_range(torch.tensor([[0.0, -100.0], [-200.0, -202.0]]), dim=1)
    (tensor([[  0., -60.],
            [-30., -32.]]), tensor([[  0., -40.],
            [  0.,   0.]]))
    """
    raised = scores - (scores.detach().amax(dim, keepdim=True) - LOWEST / 2).clamp_max_(0)
    rows = raised.clamp_min(LOWEST)
    return rows, raised - rows


def row_probabilities(scores: Tensor, dim: int) -> Tensor:
    """Row-normalised softplus: probabilities that sum to 1 along ``dim``.

    Examples
    --------
    >>> import torch
    >>> row_probabilities(torch.tensor([[0.0, 0.0], [-200.0, -200.0]]), dim=1)
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    return log_row_probabilities(scores, dim).exp()


def log_row_probabilities(scores: Tensor, dim: int) -> Tensor:
    """The logarithm of :func:`row_probabilities`, exact where that underflows.

    Examples
    --------
    >>> import torch
    >>> log_row_probabilities(torch.tensor([[20.0, -200.0]]), dim=1)
    tensor([[   0.0000, -202.9957]])
    """
    rows, below = in_range(scores, dim)
    weights = F.softplus(rows)
    return weights.log() - weights.sum(dim, keepdim=True).log() + below
