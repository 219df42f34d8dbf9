"""Arrays that are there, and arrays that are read when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Lazy:
    """An array that is read when it is needed.

    ``read`` must be picklable (a module-level function in a ``functools.partial``): other processes read too.
    """

    read: Callable[[], np.ndarray]
    shape: tuple[int, ...]


ArrayLike = np.ndarray | Sequence[Any]


def read(value: Any) -> np.ndarray:
    """Give an array, whether it is there or must be read.

    Examples
    --------
    >>> read(Lazy(lambda: np.zeros(2), (2,)))
    array([0., 0.])
    """
    return value.read() if isinstance(value, Lazy) else np.asarray(value)


def shape_of(value: Any) -> tuple[int, ...]:
    """Give an array's shape without reading it.

    Examples
    --------
    >>> shape_of([[1, 2, 3]])
    (1, 3)
    """
    return value.shape if isinstance(value, (Lazy, np.ndarray)) else np.shape(value)
