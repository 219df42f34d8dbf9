"""Which method to take, and how sure that is: methods compared item by item, with standard errors, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from annotruth.errors import shorten

SIMPLEST = ("majority", "mean", "dawid-skene", "staple", "spatial-staple", "soft-bootstrap", "global-cm")
"""Methods by how simple they are: fused labels before learnt confusion. All others follow, by the time they take."""
ALIKE = 1.0
"""Standard errors up to which methods cannot be told apart."""
LIKELY, CLEAR = 2.0, 3.0
"""Standard errors beyond which a lead is called likely, and clear."""
MIN_KNOWN = 10
"""Items (or groups) of known truth from which on these decide. With fewer, everybody's labels say more."""


def differences(
    scores: np.ndarray, groups: Sequence[str] | None = None, items: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Mean difference of every two methods over items, and its standard error: two arrays (methods, methods).

    Entry [a, b] is a's score less b's. Items of one group are not taken for independent: where there are groups,
    the standard error is that of a sum over groups.

    Parameters
    ----------
    scores : (methods, items)
    groups : one name per item; None = every item for itself
    items : which of them count, bool (items,); None = all

    Examples
    --------
    >>> mean, error = differences(np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 3.0]]))
    >>> float(mean[1, 0]), round(float(error[1, 0]), 4)  # of 1, 2 and 0: a deviation of 1, over the root of 3
    (1.0, 0.5774)
    """
    counted = np.ones(scores.shape[1], dtype=bool) if items is None else items
    names = np.arange(scores.shape[1]) if groups is None else np.asarray(groups)
    _, group = np.unique(names[counted], return_inverse=True)
    scores, n_groups, n_items = scores[:, counted], int(group.max(initial=-1)) + 1, int(counted.sum())
    difference = scores[:, None] - scores[None]
    mean = difference.mean(axis=2)
    if n_groups < 2:
        return mean, np.full(mean.shape, np.inf)
    off = (difference - mean[..., None]).reshape(len(scores) ** 2, n_items)
    sums = np.stack([np.bincount(group, weights=row, minlength=n_groups) for row in off])
    error = np.sqrt(n_groups / (n_groups - 1) * (sums**2).sum(axis=1)) / n_items
    return mean, error.reshape(mean.shape)


@dataclass(frozen=True)
class Verdict:
    """Which method to take.

    Attributes
    ----------
    by : what decided: "labels" (the length of the message) or "truth" (Dice or accuracy where the truth is known)
    best : the method with the best score
    alike : methods that cannot be told apart from it, itself among them, the simplest first
    recommended : the simplest of these
    lead : by how much the best is ahead of the next method that is not alike, with a standard error; (nan, nan) = none
    rival : that method; None = all are alike
    sure : "clear", "likely", "weak", or "open" where all are alike
    """

    by: Literal["labels", "truth"]
    best: str
    alike: tuple[str, ...]
    recommended: str
    lead: tuple[float, float]
    rival: str | None
    sure: Literal["clear", "likely", "weak", "open"]


def choose(
    methods: Sequence[str],
    mean: np.ndarray,
    error: np.ndarray,
    seconds: Sequence[float],
    by: Literal["labels", "truth"] = "labels",
) -> Verdict:
    """Take the best method, or the simplest of those that cannot be told apart from it.

    Parameters
    ----------
    mean, error : of :func:`differences` between scores of which lower ones are better
    seconds : what a training of each takes

    Examples
    --------
    >>> mean = np.array([[0.0, 4.0, 5.0], [-4.0, 0.0, 1.0], [-5.0, -1.0, 0.0]])
    >>> found = choose(["mean", "global-cm", "pixel-cm"], mean, np.full((3, 3), 1.5), seconds=[1, 2, 3])
    >>> found.best, found.recommended, found.rival, found.sure
    ('pixel-cm', 'global-cm', 'mean', 'clear')
    """
    best = int(mean[:, 0].argmin())
    behind, doubt = mean[:, best], error[:, best]
    is_alike = behind <= ALIKE * doubt
    is_alike[best] = True
    simple = sorted(np.flatnonzero(is_alike).tolist(), key=lambda one: simplicity(methods[one], seconds[one]))
    others = np.flatnonzero(~is_alike)
    if not len(others):
        names = tuple(methods[one] for one in simple)
        return Verdict(by, methods[best], names, names[0], (np.nan, np.nan), None, "open")
    with np.errstate(divide="ignore"):
        times = behind[others] / doubt[others]  # an error of 0, where one is always ahead by the same, is no error
    rival = int(others[times.argmin()])
    surely = float(times.min())
    sure: Literal["clear", "likely", "weak"] = "clear" if surely > CLEAR else "likely" if surely > LIKELY else "weak"
    return Verdict(
        by, methods[best], tuple(methods[one] for one in simple), methods[simple[0]],
        (float(behind[rival]), float(doubt[rival])), methods[rival], sure,
    )  # fmt: skip


def simplicity(method: str, seconds: float) -> tuple[int, float, str]:
    """What methods are sorted by, the simplest first.

    Examples
    --------
    >>> sorted(["pixel-cm", "staple", "majority"], key=lambda method: simplicity(method, 1.0))
    ['majority', 'staple', 'pixel-cm']
    """
    return SIMPLEST.index(method) if method in SIMPLEST else len(SIMPLEST), seconds, method


def in_words(verdict: Verdict, unit: str, digits: int = 1) -> list[str]:
    """Say which method to take, and how sure that is.

    Examples
    --------
    >>> verdict = Verdict("labels", "staple", ("majority", "staple"), "majority", (12.0, 5.0), "mean", "likely")
    >>> for sentence in in_words(verdict, "nats per item"):
    ...     print(sentence)
    Take majority.
    staple is best by a little, but majority cannot be told from it and is simpler.
    That mean is worse than staple is likely: by 12.0 ± 5.0 nats per item (2.4 standard errors).
    """
    told = [f"Take {verdict.recommended}."]
    others = [name for name in verdict.alike if name not in (verdict.best, verdict.recommended)]
    if verdict.recommended != verdict.best:
        told.append(
            f"{verdict.best} is best by a little, but {verdict.recommended} cannot be told from it and is simpler."
        )
    if others:
        told.append(f"Nor can {shorten(others)}." if verdict.recommended != verdict.best else _also_alike(others))
    if verdict.rival is None:
        told.append("No method can be told apart from the best: more items or more seeds may tell.")
        return told
    (lead, error), rival = verdict.lead, verdict.rival
    by = f"by {lead:.{digits}f} ± {error:.{digits}f} {unit}"
    times = f" ({lead / error:.1f} standard errors)" if error > 0 else ""
    said = {"clear": "is clear", "likely": "is likely", "weak": "is far from sure"}[verdict.sure]
    told.append(f"That {rival} is worse than {verdict.best} {said}: {by}{times}.")
    return told


def _also_alike(others: Sequence[str]) -> str:
    return (
        f"{shorten(list(others))} cannot be told apart from it, but {'is' if len(others) == 1 else 'are'} no simpler."
    )
