"""Warnings that come with an estimate."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from annotruth.errors import AnnotruthWarning, shorten
from annotruth.fusion.maximise import Estimate


class UnlabelledWarning(AnnotruthWarning):
    """Somewhere nobody labelled anything: the posterior there is the prior."""


def warn_unlabelled(items: tuple[str, ...], unlabelled: np.ndarray, stacklevel: int) -> None:
    """Name the items with ``unlabelled`` (items,) pixels, or answers, above 0."""
    bare = np.flatnonzero(unlabelled)
    if len(bare):
        named = shorten([items[i] for i in bare])
        warnings.warn(
            f"Nobody labelled {len(bare)} of the items, or some of their pixels ({named}): the posterior is the prior "
            "there.",
            UnlabelledWarning,
            stacklevel=stacklevel,
        )


def warn_unsettled(name: str, estimate: Estimate, stacklevel: int) -> None:
    """Say so when the iterations ran out."""
    if not estimate.converged:
        warnings.warn(
            f"{name} did not settle within max_iter iterations; raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )
