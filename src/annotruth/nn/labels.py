"""Labels in tensors: which were given, which class they name, and counts of them over batches and processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import EllipsisType

import torch
from torch import Tensor, distributed

_together = ContextVar("together", default=False)


def is_labelled(labels: Tensor, classes: int) -> Tensor:
    """Which labels name one of the classes: bool, the same shape. Missing ones are 255 in masks, -1 in label tables.

    Examples
    --------
    >>> is_labelled(torch.tensor([0, 1, 255, -1]), classes=2)
    tensor([ True,  True, False, False])
    """
    below = labels < classes
    return below if labels.dtype == torch.uint8 else below & (labels >= 0)


def class_index(labels: Tensor, classes: int) -> Tensor:
    """Labels as indices to gather with; any class where missing.

    Examples
    --------
    >>> class_index(torch.tensor([0, 1, 255], dtype=torch.uint8), classes=2)
    tensor([0, 1, 1])
    """
    return labels.clamp(0, classes - 1).long()


def one_hot(labels: Tensor, classes: int, dim: int = 1) -> Tensor:
    """A new axis of classes, float: 1 for the class that a label names, 0 for the others; all 0 where not labelled.

    Examples
    --------
    >>> one_hot(torch.tensor([[0, 1, 255]], dtype=torch.uint8), classes=2)
    tensor([[[1., 0., 0.],
             [0., 1., 0.]]])
    """
    return torch.stack([labels == number for number in range(classes)], dim=dim).float()


def one_hot_argmax(scores: Tensor, dim: int = 1) -> Tensor:
    """1 for the class with the largest score along ``dim``, 0 for the others; the same shape, without gradient.

    Examples
    --------
    >>> one_hot_argmax(torch.tensor([[0.2, 0.7, 0.1], [0.5, 0.4, 0.1]]))
    tensor([[0., 1., 0.],
            [1., 0., 0.]])
    """
    return torch.zeros_like(scores).scatter_(dim, scores.argmax(dim=dim, keepdim=True), 1.0)


def decay_and_add_(total: Tensor, new: Tensor, keep: float, where: Tensor | tuple | EllipsisType = ...) -> None:
    """Count another batch: a sum over batches with exponential decay, in place. A ratio of two is a moving average.

    Parameters
    ----------
    total, new : what was counted before, and in this batch
    keep : share of the total that remains
    where : index of the part of the total that ``new`` adds to, such as some raters; the rest stays as it is

    Examples
    --------
    >>> total = torch.tensor([10.0, 10.0, 10.0])
    >>> decay_and_add_(total, torch.ones(3), keep=0.9)
    >>> decay_and_add_(total, torch.tensor([5.0]), keep=0.5, where=torch.tensor([2]))
    >>> total
    tensor([10., 10., 10.])
    """
    total[where] = keep * total[where] + new


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
    >>> sum_over_processes(torch.ones(2))
    tensor([1., 1.])
    """
    if not _together.get():
        return ours
    total = ours.detach().clone()
    distributed.all_reduce(total)
    return total
