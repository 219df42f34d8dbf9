"""The loops behind the estimators: compiled, or in NumPy where there is so little to do that a compiler's start shows.

Which of the two is taken depends on the data alone, so that the same data give the same bits everywhere; of the passes
over pixels, which only count and look up, and so give the same bits in any case, also on what else there is to do.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

FEW_ANSWERS, FEW_PIXELS, MANY_PIXELS = 2**13, 2**18, 2**26
PADDING = 16
"""Numbers kept free on both sides of a thread's own sums, so that no two threads write one cache line."""


_expected = 0  # pixels that this process has passed, or said that it would


def row_loops(n_answers: int) -> Any:
    """The module of loops over rows of so many answers.

    Examples
    --------
    >>> row_loops(100).__name__, row_loops(10**6).__name__
    ('annotruth.fusion._em.few', 'annotruth.fusion._em.em_kernels')
    """
    return import_module(f"{__name__}.{'few' if n_answers <= FEW_ANSWERS else 'em_kernels'}")


def expect_pixels(n_pixels: int) -> None:
    """Say that so many pixels are to be passed, in however small images."""
    global _expected
    _expected += n_pixels


def pixel_loops(n_pixels: int) -> Any:
    """The module of passes over so many pixels, for tuples of votes that can be numbered.

    For small images, too, the compiled ones are taken where there are many of them.
    """
    expect_pixels(n_pixels)
    few = n_pixels <= FEW_PIXELS and _expected <= MANY_PIXELS
    return import_module(f"{__name__}.{'few' if few else 'pattern_kernels'}")


def table_loops(n_answers: int) -> Any:
    """The module of loops that sort so many answers by item."""
    return import_module(f"{__name__}.{'few' if n_answers <= FEW_ANSWERS else 'table_kernels'}")
