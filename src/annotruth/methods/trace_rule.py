"""The weight of the trace, found while training: the most confusion that still explains the labels."""

from __future__ import annotations

import torch
from torch import Tensor, nn

FREE = 0.4
"""Share of the training after the warm-up in which the trace has no weight, so that there is something to compare."""
MARGIN = 0.01
"""By how much the likelihood of held-out labels may fall behind the best one so far, as a share of it."""
FIRST, MOST = 0.01, 0.1
"""The weight it begins with, and the largest one."""


class TraceRule(nn.Module):
    """Raises the weight while held-out noisy labels are explained as well as before, lowers it when they are not.

    This is dual ascent in large steps: the trace is minimised under the constraint that the likelihood stays within a
    margin of the best one reached. The truth has no part in it.

    Examples
    --------
    >>> rule = TraceRule()
    >>> for likelihood, done in [(0.3, 0.2), (0.2, 0.4), (0.19, 0.6), (0.19, 0.8), (0.25, 0.9)]:
    ...     rule.after_epoch(likelihood, done)
    ...     print(round(rule.weight.item(), 4))
    0.0
    0.01
    0.02
    0.04
    0.01
    """

    weight: Tensor
    best: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.tensor(0.0))
        self.register_buffer("best", torch.tensor(torch.inf))

    def after_epoch(self, negative_log_likelihood: float, done: float) -> None:
        """Look at the held-out labels' likelihood; ``done`` runs from 0 to 1 after the warm-up."""
        within = negative_log_likelihood <= self.best * (1 + MARGIN)
        self.best.clamp_(max=negative_log_likelihood)
        if done < FREE:
            return
        raised = (2 * self.weight).clamp(FIRST, MOST)
        self.weight.copy_(raised if within else self.weight / 4)
