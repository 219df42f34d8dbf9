"""The raters in order of skill: how sure that order is, and each one's most frequent error in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

NO_ERROR = 0.005
"""An error rarer than this is not worth a word."""


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
    table = pd.DataFrame({"rater": list(raters), "skill": skill, "low": low, "high": high, "labelled": labelled})
    table["error"] = [
        most_frequent_error(matrix, classes) if given else "" for matrix, given in zip(matrices, labelled)
    ]
    table["best_rank"] = 1 + len(table) - np.searchsorted(np.sort(low), high, side="right")
    table["worst_rank"] = len(table) - np.searchsorted(np.sort(high), low, side="left")
    table = table.iloc[np.lexsort((-table["skill"], table["labelled"] == 0))].reset_index(drop=True)
    table["rank"] = np.arange(1, len(table) + 1)
    return table[["rater", "rank", "best_rank", "worst_rank", "skill", "low", "high", "labelled", "error"]]


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
    if wrong[true, observed] < NO_ERROR:
        return "none"
    return f"calls {classes[true]} {classes[observed]}: {100 * wrong[true, observed]:.0f} %"
