"""How good the raters are: credible intervals of their matrices and skills, and the order of skill."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

MIN_ERROR_SHOWN = 0.005
"""An error rarer than this is not worth a word."""
_MIN_SKEWNESS = 1.6e-5


def confusion_interval(
    counts: np.ndarray, level: float = 0.95, *, one_coin: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of each entry of confusion matrices.

    Parameters
    ----------
    counts : (raters, classes, classes) expected counts, [true, observed], with any pseudo-counts added
    level : probability that the entry lies between the bounds
    one_coin : whether the matrices have one number each, the rater's chance to be right

    Returns
    -------
    low, high : (raters, classes, classes) each

    Notes
    -----
    With a uniform prior, a row is Dirichlet(1 + counts), and an entry of it has a Beta distribution. The truth is
    taken at its expectation and pixels as independent; neighbouring pixels are not, so for masks read the intervals
    as lower bounds of the uncertainty.

    Examples
    --------
    >>> low, high = confusion_interval(np.array([[[90.0, 10.0], [0.0, 0.0]]]))
    >>> low.round(2)[0].tolist(), high.round(2)[0].tolist()
    ([[0.83, 0.06], [0.03, 0.03]], [[0.94, 0.17], [0.98, 0.98]])
    """
    n_classes = counts.shape[-1]
    if n_classes == 1:
        return np.ones_like(counts), np.ones_like(counts)
    if one_coin:
        low, high = (bound[:, None, None] for bound in skill_interval(counts, level, one_coin=True))
        right = np.eye(n_classes, dtype=bool)
        return np.where(right, low, (1 - high) / (n_classes - 1)), np.where(right, high, (1 - low) / (n_classes - 1))
    evidence = counts + 1.0
    return _bounds(evidence, evidence.sum(axis=-1, keepdims=True) - evidence, level)


def skill_interval(counts: np.ndarray, level: float = 0.95, *, one_coin: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Bounds (raters,) of each rater's skill, the mean of its confusion matrix's diagonal.

    The rows are independent, so that mean, variance and skewness of the skill are known; the Pearson III distribution
    with these gives the bounds. See :func:`confusion_interval` for parameters and caveats.

    Examples
    --------
    >>> low, high = skill_interval(np.array([[[90.0, 10.0], [5.0, 95.0]]]))
    >>> float(low[0].round(3)), float(high[0].round(3))
    (0.875, 0.95)
    """
    n_classes = counts.shape[-1]
    if n_classes == 1:
        return np.ones(len(counts)), np.ones(len(counts))
    if one_coin:
        right = np.trace(counts, axis1=1, axis2=2)
        return _bounds(1 + right, 1 + counts.sum(axis=(1, 2)) - right, level)
    right = np.diagonal(counts, axis1=1, axis2=2)
    return diagonal_interval(right + 1.0, counts.sum(axis=2) - right + (n_classes - 1.0), level)


def diagonal_interval(right: np.ndarray, wrong: np.ndarray, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
    """As :func:`skill_interval`, from how many labels of each class were right and wrong: (raters, classes) each.

    Both are positive: what the prior is worth is added.

    Examples
    --------
    >>> low, high = diagonal_interval(np.array([[91.0, 96.0]]), np.array([[11.0, 6.0]]))
    >>> float(low[0].round(3)), float(high[0].round(3))
    (0.875, 0.95)
    """
    n_classes, total = right.shape[1], right + wrong
    mean, variance = right / total, right * wrong / (total**2 * (total + 1))
    skewness = 2 * (wrong - right) * np.sqrt(total + 1) / ((total + 2) * np.sqrt(right * wrong))
    spread = np.sqrt(variance.sum(axis=1))
    lean = (skewness * variance**1.5).sum(axis=1) / spread**3
    tail = (1 - level) / 2
    low, high = (
        np.clip(mean.mean(axis=1) + _pearson_quantile(q, lean) * spread / n_classes, 0, 1) for q in (tail, 1 - tail)
    )
    return low, high


def share_interval(part: np.ndarray, rest: np.ndarray, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of shares that ``part`` labels speak for and ``rest`` against, with Jeffreys' prior, half a label each.

    With many classes, a uniform prior of a whole row weighs as much as a label for each of them: it expects a chance to
    be right of 1 / classes. Here every entry stands by itself.

    Examples
    --------
    >>> low, high = share_interval(np.array([9.0, 0.0]), np.array([1.0, 10.0]))
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([0.62, 0.0], [0.99, 0.22])
    """
    return _bounds(part + 0.5, rest + 0.5, level)


def ranking(
    raters: Sequence[str],
    matrices: Iterable[np.ndarray],
    classes: Sequence[str],
    skill: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    labelled: np.ndarray,
) -> pd.DataFrame:
    """Rank raters, the most skilful first; those who labelled nothing come last.

    Parameters
    ----------
    raters : names
    matrices : (classes, classes) of each rater, [true, observed]
    classes : names
    skill, low, high : (raters,) with the bounds of their intervals
    labelled : (raters,) how many items or pixels each labelled

    Returns
    -------
    One row per rater: rater, rank, best_rank and worst_rank (between which the rank lies, given the intervals: where
    they are equal, it is certain), skill, low, high, labelled, error (see :func:`most_frequent_error`)

    Examples
    --------
    >>> matrices = [np.array([[0.9, 0.1], [0.4, 0.6]]), np.eye(2)]
    >>> skill, labelled = np.array([0.75, 1.0]), np.array([10, 10])
    >>> table = ranking(["ann", "bob"], matrices, ["no", "yes"], skill, skill - 0.1, np.array([0.85, 1.0]), labelled)
    >>> print(table[["rater", "rank", "best_rank", "worst_rank", "error"]].to_string(index=False))
    rater  rank  best_rank  worst_rank              error
      bob     1          1           1               none
      ann     2          2           2 calls yes no: 40 %
    """
    import pandas as pd

    return pd.DataFrame(ranking_columns(raters, matrices, classes, skill, low, high, labelled))


def ranking_columns(
    raters: Sequence[str],
    matrices: Iterable[np.ndarray],
    classes: Sequence[str],
    skill: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    labelled: np.ndarray,
) -> dict[str, np.ndarray]:
    """The columns of :func:`ranking` by name, for those who need no data frame."""
    errors = [most_frequent_error(matrix, classes) if given else "" for matrix, given in zip(matrices, labelled)]
    order = np.lexsort((-skill, labelled == 0))
    columns = {
        "best_rank": 1 + len(skill) - np.searchsorted(np.sort(low), high, side="right"),
        "worst_rank": len(skill) - np.searchsorted(np.sort(high), low, side="left"),
        "skill": skill, "low": low, "high": high, "labelled": labelled, "error": np.array(errors, dtype=object),
    }  # fmt: skip
    names, ranks = np.array(list(raters), dtype=object)[order], np.arange(1, len(skill) + 1)
    return {"rater": names, "rank": ranks} | {name: values[order] for name, values in columns.items()}


def most_frequent_error(confusion: np.ndarray, classes: Sequence[str]) -> str:
    """Say in words which mistake (classes, classes) [true, observed] is likeliest.

    Examples
    --------
    >>> most_frequent_error(np.array([[0.98, 0.02], [0.79, 0.21]]), ["background", "digit"])
    'calls digit background: 79 %'
    >>> most_frequent_error(np.eye(2), ["background", "digit"])
    'none'
    """
    wrong = np.where(np.eye(len(confusion), dtype=bool), 0, confusion)
    true, observed = divmod(int(wrong.argmax()), len(wrong))
    if wrong[true, observed] < MIN_ERROR_SHOWN:
        return "none"
    return f"calls {classes[true]} {classes[observed]}: {100 * wrong[true, observed]:.0f} %"


def _bounds(first: np.ndarray, second: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles of Beta distributions. Of SciPy only special functions are loaded: its statistics take a second."""
    from scipy.special import betainccinv, betaincinv

    tail = (1 - level) / 2
    return betaincinv(first, second, tail), betainccinv(first, second, tail)


def _pearson_quantile(probability: float, skewness: np.ndarray) -> np.ndarray:
    """Quantile of Pearson III distributions of mean 0 and variance 1: a shifted Gamma, or a normal one without skew."""
    from scipy.special import gammaincinv, ndtri

    leans = np.abs(skewness) > _MIN_SKEWNESS
    shape = 4 / np.where(leans, skewness, 1.0) ** 2
    scale = np.where(leans, skewness, 1.0) / 2
    gamma = gammaincinv(shape, np.where(skewness < 0, 1 - probability, probability))
    return np.where(leans, (gamma - shape) * scale, ndtri(probability))
