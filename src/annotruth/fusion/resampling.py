"""How far an estimate may be trusted, by drawing the items anew: pixels of an image are not independent, images are.

Estimating again from items drawn with replacement (the bootstrap) costs little, because items are drawn by changing the
weights of the votes, and every estimate goes on from the one that all items gave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

import numpy as np

MIN_ITEMS = 3
"""Fewer say nothing of how items differ."""
_REPLICATES, _GROUPS = 200, 20
_FEW_VOTES, _MANY_VOTES = 2**13, 2**17
_MIN_SPREAD, _MIN_SHARE = 1e-9, 0.5


@dataclass(frozen=True)
class Drawing:
    """How items are drawn anew.

    Attributes
    ----------
    n_items : how many there are
    count : times that they are drawn, or groups of them left out
    by_group : leave out one of twenty groups of items in turn (the jackknife), instead of drawing with replacement
    """

    n_items: int
    count: int
    by_group: bool

    @classmethod
    def of(cls, n_items: int, n_votes: int) -> Drawing | None:
        """The way for so many items and votes; None where there are too few items, or too many votes."""
        if n_items < MIN_ITEMS or n_votes > _MANY_VOTES:
            return None
        if n_votes <= _FEW_VOTES or n_items < _GROUPS:
            return cls(n_items, _REPLICATES, False)
        return cls(n_items, _GROUPS, True)

    def times(self) -> Iterator[np.ndarray]:
        """How often each item (items,) is taken, time and again; always the same.

        Examples
        --------
        >>> [int(each.sum()) for each in Drawing(40, 20, by_group=True).times()][:3]
        [38, 38, 38]
        """
        rng = np.random.default_rng(0)
        group = rng.permutation(self.n_items) % self.count
        for number in range(self.count):
            if self.by_group:
                yield (group != number).astype(np.int64)
            else:
                yield rng.multinomial(self.n_items, np.full(self.n_items, 1 / self.n_items))

    def weights(self, rows: Sequence[np.ndarray], counts: Sequence[np.ndarray], n_rows: int) -> Iterator[np.ndarray]:
        """Weights (rows,) of the votes, time and again.

        Parameters
        ----------
        rows, counts : of each item, which rows of the votes it has, and how many of its pixels have them
        """
        row, count = np.concatenate(rows), np.concatenate(counts)
        item = np.repeat(np.arange(len(rows)), [len(each) for each in rows])
        for times in self.times():
            yield np.bincount(row, times[item] * count, minlength=n_rows)

    def reach(self, level: float) -> float:
        """How many standard deviations of the replicates the bounds lie from the estimate."""
        if self.by_group:  # leaving out a twentieth moves an estimate less than drawing all anew
            return _student_quantile(level, self.count - 1) * (self.count - 1) / sqrt(self.count)
        return _student_quantile(level, self.n_items - 1) * sqrt(self.n_items / (self.n_items - 1))


def widened(
    estimate: np.ndarray,
    replicates: np.ndarray,
    reach: float,
    otherwise: Callable[[], tuple[np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of probabilities that were estimated from items drawn anew, normal in the log odds.

    Where all replicates are the same, as for an error that nobody ever made, they tell nothing, and other bounds are
    taken.

    Parameters
    ----------
    estimate : of any shape
    replicates : (replicates, *shape), NaN where a replicate has nothing to say
    reach : how many standard deviations the bounds lie from the estimate
    otherwise : gives bounds (low, high) of that shape

    Examples
    --------
    >>> found = np.random.default_rng(0).normal(0.8, 0.02, (200, 1))
    >>> low, high = widened(np.array([0.8]), found, 1.96, lambda: (np.zeros(1), np.ones(1)))
    >>> low.round(2), high.round(2)
    (array([0.76]), array([0.84]))
    """
    odds = _log_odds(replicates)
    known = np.isfinite(odds)
    enough = known.mean(axis=0) > _MIN_SHARE
    count = np.maximum(known.sum(axis=0), 2)
    mean = np.where(known, odds, 0.0).sum(axis=0) / count
    spread = np.sqrt(np.where(known, (odds - mean) ** 2, 0.0).sum(axis=0) / (count - 1))
    centre = _log_odds(estimate)
    low, high = (1 / (1 + np.exp(-np.clip(centre + side * reach * spread, -700, 700))) for side in (-1, 1))
    told = enough & (spread > _MIN_SPREAD) & np.isfinite(centre)
    if told.all():
        return low, high
    other_low, other_high = otherwise()
    return np.where(told, low, other_low), np.where(told, high, other_high)


def around(estimate: np.ndarray, bounds: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Bounds (low, high) that hold their estimate: those that a prior gives end short of a rater who never erred.

    Examples
    --------
    >>> around(np.array([1.0]), (np.array([0.8]), np.array([0.96])))
    (array([0.8]), array([1.]))
    """
    low, high = bounds
    return np.minimum(low, estimate), np.maximum(high, estimate)


def _log_odds(probability: np.ndarray) -> np.ndarray:
    inside = np.where((probability > _MIN_SPREAD) & (probability < 1 - _MIN_SPREAD), probability, np.nan)
    return np.log(inside / (1 - inside))


def _student_quantile(level: float, freedom: int) -> float:
    """Upper quantile of Student's distribution by its expansion around the normal one (to 1 % from five items on)."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3
