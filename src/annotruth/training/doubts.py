"""Why a trained model may be wrong, in words: found by counting the raters' labels against its own estimate."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from annotruth.errors import DiffuseConfusionWarning, SmallImageWarning, shorten
from annotruth.fusion.identifiability import PREDICTED_MASKS, warn_identifiability
from annotruth.methods import Method, Parts
from annotruth.metrics import skill
from annotruth.nn import AnySize
from annotruth.training.counting import Counts, row_means

DIFFUSE = 0.1
"""By how much a learnt skill may lie below what the labels say."""


def warn_doubts(
    method: Method, counts: Counts, raters: Sequence[str], classes: Sequence[str], stacklevel: int = 2
) -> list[str]:
    """Warn of what speaks against a model of masks; return the same in words."""
    problems: list[str] = []
    # Judged by the labels: learnt matrices may look sound, whatever was drawn.
    decided = row_means(counts.decided, counts.decided.sum(axis=2))
    labelled = counts.decided.sum(axis=(1, 2))
    if counts.learnt is not None and hasattr(method, "trace_weight"):
        met = counts.met.sum(axis=0)
        by_labels = np.where(labelled > 0, skill(row_means(met, met.sum(axis=2))), 0)
        problems += warn_diffuse(skill(counts.confusion()), by_labels, raters, stacklevel + 1)
    if method.learns_from_raters:
        frequency = counts.decided.sum(axis=(0, 2))
        problems += warn_identifiability(
            decided, frequency / frequency.sum(), labelled, raters=raters, classes=classes,
            yardstick=PREDICTED_MASKS, alike=counts.alike, stacklevel=stacklevel + 1,
        )  # fmt: skip
    return problems


def warn_diffuse(learnt: np.ndarray, by_labels: np.ndarray, raters: Sequence[str], stacklevel: int = 2) -> list[str]:
    """Warn where the learnt skill of a rater is far below what the labels say, (raters,) each.

    Training makes the trace of the matrices as small as the labels allow. Given too much weight, it makes everybody out
    to answer at random, and the network then learns little from anybody.

    Examples
    --------
    >>> warn_diffuse(np.array([0.9, 0.5]), np.array([0.95, 0.5]), ["ann", "bob"])
    []
    """
    worst = int((by_labels - learnt).argmax())
    if by_labels[worst] - learnt[worst] <= DIFFUSE:
        return []
    problem = (
        f"The learnt confusion is too diffuse: by the labels, counted against the estimated truth, {raters[worst]} has "
        f"a skill of {by_labels[worst]:.2f}, but by the learnt matrix {learnt[worst]:.2f}. The trace weighs too much; "
        "lower trace_weight, or leave it out."
    )
    warnings.warn(problem, DiffuseConfusionWarning, stacklevel=stacklevel)
    return [problem]


def warn_small(parts: Parts, names: Sequence[str], shapes: Sequence[tuple[int, ...]], stacklevel: int = 2) -> None:
    """Warn of images (*spatial) that annotruth's own network must pad."""
    least = max((module.least for module in parts.modules() if isinstance(module, AnySize)), default=0)
    small = [f"{name} ({'×'.join(map(str, shape))})" for name, shape in zip(names, shapes) if min(shape) < least]
    if small:
        warnings.warn(
            f"Smaller than the {least} pixels along each axis that the network needs, and therefore padded: "
            f"{shorten(small, 3)}.",
            SmallImageWarning,
            stacklevel=stacklevel,
        )
