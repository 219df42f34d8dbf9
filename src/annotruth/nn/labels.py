"""Which labels were given. The one place that knows how a missing one looks in a tensor."""

from __future__ import annotations

import torch
from torch import Tensor


def is_labelled(labels: Tensor, classes: int) -> Tensor:
    """Which labels name one of the classes: bool, the same shape. Missing ones are 255 in masks, -1 in label tables.

    Examples
    --------
    >>> is_labelled(torch.tensor([0, 1, 255, -1]), classes=2)
    tensor([ True,  True, False, False])
    """
    given = labels < classes
    return given if labels.dtype == torch.uint8 else given & (labels >= 0)


def class_index(labels: Tensor, classes: int) -> Tensor:
    """Labels as indices to gather with; any class where missing.

    Examples
    --------
    >>> class_index(torch.tensor([0, 1, 255], dtype=torch.uint8), classes=2)
    tensor([0, 1, 1])
    """
    return labels.clamp(0, classes - 1).long()
