"""Tables with a row per rater, of which a training step touches only the rows of those who answered."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


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
