"""Sums over the processes that train together, for whatever is counted in batches of which each sees a share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from torch import Tensor, distributed

_together = ContextVar("together", default=False)


@contextmanager
def training_together() -> Iterator[None]:
    """Make :func:`sum_over_processes` sum; all processes of the default group must call it alike."""
    token = _together.set(True)
    try:
        yield
    finally:
        _together.reset(token)


def sum_over_processes(ours: Tensor) -> Tensor:
    """The sum of what all processes counted, without gradient; what one counted alone, where one trains by itself.

    Examples
    --------
    >>> import torch
    >>> sum_over_processes(torch.ones(2))
    tensor([1., 1.])
    """
    if not _together.get():
        return ours
    total = ours.detach().clone()
    distributed.all_reduce(total)
    return total
