"""Why a trained model may be wrong, in words: found by counting the raters' labels against its own estimate."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import (
    CopiesWarning,
    DiffuseConfusionWarning,
    IdentifiabilityWarning,
    SmallImageWarning,
    UnansweredClassWarning,
    shorten,
)
from annotruth.fusion.identifiability import PREDICTED_ANSWERS, PREDICTED_MASKS, warn_identifiability
from annotruth.fusion.suspects import tell_copies
from annotruth.methods import Method, MethodModel
from annotruth.methods.protocols import DoubtsTruth
from annotruth.metrics import skill
from annotruth.nn import AnySize
from annotruth.training.rater_counts import MOST_KEPT, AnswerCounts, MaskCounts, row_means

MAX_SKILL_GAP = 0.1
"""By how much a learnt skill may lie below what the labels say."""


def warn_of_masks(
    method: Method[Any], model: MethodModel, counts: MaskCounts, raters: Sequence[str], classes: Sequence[str],
    stacklevel: int = 2,
) -> list[str]:  # fmt: skip
    """Warn of what speaks against a model of masks; return the same in words."""
    problems = method.doubts(model, raters) if isinstance(method, DoubtsTruth) else []
    for problem in problems:
        warnings.warn(problem, IdentifiabilityWarning, stacklevel=stacklevel)
    # Judged by the labels: learnt matrices may look sound, whatever was drawn.
    decided = row_means(counts.decided, counts.decided.sum(axis=2))
    labelled = counts.decided.sum(axis=(1, 2))
    if counts.learnt is not None and method.shrinks_trace:
        met = counts.met.sum(axis=0)
        by_labels = np.where(labelled > 0, skill(row_means(met, met.sum(axis=2))), 0)
        problems += warn_of_diffuse_matrices(skill(counts.confusion()), by_labels, raters, stacklevel + 1)
    if method.learns_from_raters:
        frequency = counts.decided.sum(axis=(0, 2))
        problems += warn_identifiability(
            decided, frequency / frequency.sum(), labelled, raters=raters, classes=classes,
            yardstick=PREDICTED_MASKS, alike=counts.alike, stacklevel=stacklevel + 1,
        )  # fmt: skip
    return problems


def warn_of_answers(
    method: Method[Any],
    counted: AnswerCounts,
    annotations: Annotations,
    matrix_of: Callable[[int], np.ndarray],
    stacklevel: int = 2,
) -> list[str]:
    """Warn of what speaks against a model of a label table; return the same in words.

    ``matrix_of`` gives a rater's matrix (classes, classes) by number.
    """
    problems: list[str] = []
    never = np.bincount(annotations.answers.label, minlength=len(annotations.classes)) == 0
    if never.any():
        names = shorten([name for name, unseen in zip(annotations.classes, never) if unseen])
        problems.append(f"Nobody ever answered {names}: the model cannot learn what that looks like.")
        warnings.warn(problems[0], UnansweredClassWarning, stacklevel=stacklevel)
    if method.learns_from_raters:
        problems += warn_of_copies(method, annotations, matrix_of, stacklevel + 1)
        # Of more matrices than can be kept, those of the raters who answered most.
        busiest = np.sort(np.argsort(-counted.given)[: max(MOST_KEPT // len(never) ** 2, 3)])
        problems += warn_identifiability(
            np.stack([matrix_of(int(rater)) for rater in busiest]), np.where(never, 0, counted.frequency),
            counted.given[busiest], raters=[annotations.raters[rater] for rater in busiest],
            classes=annotations.classes, yardstick=PREDICTED_ANSWERS, stacklevel=stacklevel + 1,
        )  # fmt: skip
    return problems


def warn_of_copies(
    method: Method[Any], annotations: Annotations, matrix_of: Callable[[int], np.ndarray], stacklevel: int = 2
) -> list[str]:
    """Warn of raters who give the same answers though many of these are wrong; of good ones nothing is said."""
    so = "They were counted as one." if method.counts_copies_once else "Together they may outvote the others."
    problems = [f"{told} {so}" for told in tell_copies(annotations, matrix_of)]
    for problem in problems:
        warnings.warn(problem, CopiesWarning, stacklevel=stacklevel)
    return problems


def warn_of_diffuse_matrices(
    learnt: np.ndarray, by_labels: np.ndarray, raters: Sequence[str], stacklevel: int = 2
) -> list[str]:
    """Warn where the learnt skill of a rater is far below what the labels say, (raters,) each.

    Training makes the trace of the matrices as small as the labels allow. Given too much weight, it makes everybody out
    to answer at random, and the network then learns little from anybody.

    Examples
    --------
    >>> warn_of_diffuse_matrices(np.array([0.9, 0.5]), np.array([0.95, 0.5]), ["ann", "bob"])
    []
    """
    worst = int((by_labels - learnt).argmax())
    if by_labels[worst] - learnt[worst] <= MAX_SKILL_GAP:
        return []
    problem = (
        f"The learnt confusion is too diffuse: by the labels, counted against the estimated truth, {raters[worst]} has "
        f"a skill of {by_labels[worst]:.2f}, but by the learnt matrix {learnt[worst]:.2f}. The trace weighs too much; "
        "lower trace_weight, or leave it out."
    )
    warnings.warn(problem, DiffuseConfusionWarning, stacklevel=stacklevel)
    return [problem]


def warn_of_small_images(
    model: MethodModel, names: Sequence[str], shapes: Sequence[tuple[int, ...]], stacklevel: int = 2
) -> None:
    """Warn of images (*spatial) that annotruth's own network must pad."""
    axes = len(shapes[0]) if shapes else 0
    needs = [module.least(axes) for module in model.modules() if isinstance(module, AnySize)]
    least = tuple(max(lengths) for lengths in zip(*needs)) if needs else (1,) * axes
    small = [
        f"{name} ({_times(shape)})" for name, shape in zip(names, shapes) if any(a < b for a, b in zip(shape, least))
    ]
    if small:
        warnings.warn(
            f"Smaller than the {_times(least)} pixels that the network needs, and therefore padded: "
            f"{shorten(small, 3)}.",
            SmallImageWarning,
            stacklevel=stacklevel,
        )


def _times(size: Sequence[int]) -> str:
    return "×".join(map(str, size))
