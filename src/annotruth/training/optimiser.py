"""AdamW that leaves alone the rows of a table which a step did not touch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def touched_rows(gradient: Tensor) -> Tensor:
    """A gradient as a sparse one of the rows that are not all zero.

    Processes exchange gradients in full; this finds again whose rows a step is about.

    Examples
    --------
    >>> touched_rows(torch.tensor([[0.0, 0.0], [0.0, 2.0]])).indices()
    tensor([[1]])
    """
    rows = gradient.flatten(1).any(dim=1).nonzero()[:, 0]
    return torch.sparse_coo_tensor(
        rows[None], gradient[rows], gradient.shape, is_coalesced=True, check_invariants=False
    )  # fmt: skip


class RowAdamW(torch.optim.AdamW):
    """AdamW whose sparse gradients move, and cost, their own rows only.

    Each row counts its own steps: a rater who answers once in a hundred batches learns as fast per answer as one who
    always does. Dense gradients are treated as ever.

    Examples
    --------
    >>> table = torch.zeros(4, 2, requires_grad=True)
    >>> optimiser = RowAdamW([table], lr=0.1)
    >>> table.grad = torch.sparse_coo_tensor([[2]], torch.ones(1, 2), (4, 2))
    >>> _ = optimiser.step()
    >>> table.detach()
    tensor([[ 0.0000,  0.0000],
            [ 0.0000,  0.0000],
            [-0.1000, -0.1000],
            [ 0.0000,  0.0000]])
    """

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        gradients = []
        for group in self.param_groups:
            for table in group["params"]:
                if table.grad is not None and table.grad.is_sparse:
                    gradients.append((table, table.grad))
                    self._step_rows(table, table.grad.coalesce(), group)
                    table.grad = None  # not for the dense step below
        super().step()
        for table, gradient in gradients:
            table.grad = gradient
        return loss

    def _step_rows(self, table: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[table]
        if not state:
            state["step"] = torch.zeros(len(table), *[1] * (table.ndim - 1), device=table.device)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(table), torch.zeros_like(table)
        rows, slope = gradient.indices()[0], gradient.values()
        (first, second), rate = group["betas"], group["lr"]
        step = state["step"][rows] + 1
        mean = state["exp_avg"][rows].lerp_(slope, 1 - first)
        square = state["exp_avg_sq"][rows].mul_(second).addcmul_(slope, slope, value=1 - second)
        state["step"][rows], state["exp_avg"][rows], state["exp_avg_sq"][rows] = step, mean, square
        spread = (square / (1 - second**step)).sqrt_().add_(group["eps"])
        moved = table[rows].mul_(1 - rate * group["weight_decay"])
        table[rows] = moved - rate * (mean / (1 - first**step)) / spread
