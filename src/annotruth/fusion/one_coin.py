"""Dawid-Skene with one number per rater, for thousands of raters and classes: nothing of raters × classes² is made.

A rater is right with a chance of their own, and errs evenly. What answers say of an item then differs from the prior
only for the classes that somebody named, so that sums over answers are all there is to compute.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, Self

import numpy as np

from annotruth.fusion.em import MIN_EXPECTED_COUNT, log_of
from annotruth.fusion.state import FusionState
from annotruth.fusion.votes import Votes
from annotruth.validation import MISSING_LABEL


def coin_matrices(right: np.ndarray, wrong: np.ndarray, n_classes: int) -> np.ndarray:
    """Matrices (raters, classes, classes) with one number on the diagonal and another beside it: (raters,) each.

    They are a view of 2 · classes - 1 numbers per rater, and cannot be written to.

    Examples
    --------
    >>> coin_matrices(np.array([0.8]), np.array([0.1]), 3)
    array([[[0.8, 0.1, 0.1],
            [0.1, 0.8, 0.1],
            [0.1, 0.1, 0.8]]])
    """
    rows = np.repeat(wrong[:, None], 2 * n_classes - 1, axis=1).astype(np.float64)
    rows[:, n_classes - 1] = right
    # Entry [true, observed] is number (classes - 1) + observed - true of the rater's row.
    step = rows.strides[1]
    return np.lib.stride_tricks.as_strided(
        rows[:, n_classes - 1 :], (len(rows), n_classes, n_classes), (rows.strides[0], -step, step), writeable=False
    )


class CoinSums(Protocol):
    """What sums over all answers give, wherever these are. ``shares`` and the call are as in :class:`VoteCoins`.

    Attributes
    ----------
    n_classes, n_items, n_answers : sizes, of items that anybody labelled
    total : (raters,) how often each answered
    """

    n_classes: int
    n_items: float
    n_answers: float
    total: np.ndarray

    def shares(self) -> tuple[np.ndarray, np.ndarray]: ...

    def __call__(
        self, prior: np.ndarray, skill: np.ndarray, error: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, float]: ...


class VoteCoins:
    """The answers by the classes that somebody named for an item (pairs), and what sums over them give."""

    def __init__(self, votes: Votes) -> None:
        self.votes, self.n_classes = votes, votes.n_classes
        answers = votes.answers
        key = answers.item.astype(np.int64) * votes.n_classes + answers.label
        pairs, self.pair = np.unique(key, return_inverse=True)
        self.item, self.label = pairs // votes.n_classes, pairs % votes.n_classes
        self.gold = votes.gold[self.item]
        self.known = np.flatnonzero(votes.gold != MISSING_LABEL)
        self.teaches = np.where(votes.answered, votes.weight, 0.0)
        self.n_items, self.n_answers = float((self.teaches > 0).sum()), float(len(answers.item))
        self.total = np.bincount(answers.rater, minlength=votes.n_raters).astype(np.float64)

    def shares(self) -> tuple[np.ndarray, np.ndarray]:
        """How often each rater is right (raters,), and items per class (classes,), with vote shares as posterior."""
        given = np.bincount(self.pair, minlength=len(self.item)).astype(np.float64)
        named = given / np.bincount(self.votes.answers.item, minlength=self.votes.n_rows)[self.item]
        named = self._with_gold(named)
        return self._right(named), self._by_class(named, np.zeros(self.votes.n_rows), np.zeros(self.n_classes))

    def __call__(self, prior: np.ndarray, skill: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """The same with the posterior under a prior (classes,), skills and chances of one error (raters,)."""
        named, scale, evidence = self.posterior(prior, skill, error)
        likelihood = float(evidence @ (self.teaches > 0))
        return self._right(named), self._by_class(named, scale, prior), likelihood

    def posterior(
        self, prior: np.ndarray, skill: np.ndarray, error: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Posterior of the pairs; (rows,) factors of the prior for classes that nobody named; (rows,) log evidence."""
        answers, n_rows = self.votes.answers, self.votes.n_rows
        base = np.bincount(answers.item, np.log(error)[answers.rater], minlength=n_rows)
        gain = np.bincount(self.pair, (np.log(skill) - np.log(error))[answers.rater], minlength=len(self.item))
        most = np.zeros(n_rows)
        np.maximum.at(most, self.item, gain)
        weight = prior[self.label]
        rest = np.maximum(1.0 - np.bincount(self.item, weight, minlength=n_rows), 0.0)
        pairs = weight * np.exp(gain - most[self.item])
        total = rest * np.exp(-most) + np.bincount(self.item, pairs, minlength=n_rows)
        evidence = base + most + log_of(total)
        scale = np.exp(-most) / total
        if len(self.known):
            hit = np.flatnonzero(self.gold == self.label)
            evidence[self.known] = base[self.known] + log_of(prior[self.votes.gold[self.known]])
            evidence[self.item[hit]] += gain[hit]
            scale[self.known] = 0.0
        return self._with_gold(pairs / total[self.item]), scale, evidence

    def _with_gold(self, named: np.ndarray) -> np.ndarray:
        return np.where(self.gold == MISSING_LABEL, named, self.gold == self.label)

    def _right(self, named: np.ndarray) -> np.ndarray:
        return np.bincount(self.votes.answers.rater, named[self.pair], minlength=self.votes.n_raters)

    def _by_class(self, named: np.ndarray, scale: np.ndarray, prior: np.ndarray) -> np.ndarray:
        """Expected items of each class: those for which it was named, and the prior's share of all others."""
        taught = scale * (self.teaches > 0)
        unnamed = taught.sum() - np.bincount(self.label, taught[self.item], minlength=self.n_classes)
        counts = prior * unnamed
        free = self.gold == MISSING_LABEL
        counts += np.bincount(self.label[free], named[free], minlength=self.n_classes)
        return counts + np.bincount(self.votes.gold[self.known], minlength=self.n_classes)


@dataclass(frozen=True)
class CoinState(FusionState):
    """What :func:`maximise_coins` has learnt; its matrices are views, to be looked at one at a time.

    Attributes
    ----------
    right, total : (raters,) how often each is expected to have been right, and how often they answered
    """

    right: np.ndarray = field(default_factory=lambda: np.empty(0))
    total: np.ndarray = field(default_factory=lambda: np.empty(0))

    @property
    def evidence(self) -> np.ndarray:
        """As many right and wrong answers as counts of two classes (raters, 2, 2): all that bounds of skills need."""
        return coin_matrices(self.right / 2, (self.total - self.right) / 2, 2)

    def for_raters(self, n_raters: int) -> Self:
        return self  # whoever goes on from it begins anew


def maximise_coins(votes: Votes, *, prior: str | np.ndarray, max_iter: int, tol: float) -> CoinState:
    """Alternate M- and E-steps as :func:`annotruth.fusion.dawid_skene.maximise` does with ``one_coin``.

    Matrices of the state are views, see :func:`coin_matrices`. Rows of votes count once each.
    """
    return maximise_coin_sums(VoteCoins(votes), prior=prior, max_iter=max_iter, tol=tol)


def maximise_coin_sums(sums: CoinSums, *, prior: str | np.ndarray, max_iter: int, tol: float) -> CoinState:
    """Do so given who sums up over all answers."""
    n_classes, n_items, n_answers = sums.n_classes, max(sums.n_items, 1.0), max(sums.n_answers, 1.0)
    right, classes = sums.shares()
    frequency = classes / n_items if isinstance(prior, str) else np.asarray(prior, dtype=np.float64)
    path: list[float] = []
    converged = False
    skill = error = np.zeros(len(sums.total))
    while len(path) < max_iter and not converged:
        skill, error = coin_chances(right, sums.total, n_classes)
        if isinstance(prior, str) and prior == "estimated":
            frequency = classes / n_items
        right, classes, likelihood = sums(frequency, skill, error)
        path.append(likelihood)
        converged = len(path) > 1 and path[-1] - path[-2] < tol * n_answers
    spread = max(n_classes * (n_classes - 1), 1)
    counts = coin_matrices(right / n_classes, (sums.total - right) / spread, n_classes)
    matrices = coin_matrices(skill, error, n_classes)
    return CoinState(matrices, counts, frequency, np.array(path), converged, right=right, total=sums.total)


def coin_chances(right: np.ndarray, total: np.ndarray, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Chances (raters,) to be right, and to make one certain error, of raters who were right so often of so often."""
    good, bad = np.maximum(right, MIN_EXPECTED_COUNT), np.maximum(total - right, MIN_EXPECTED_COUNT)
    skill = np.where(total == 0, 1 / n_classes, good / (good + bad))
    error = np.where(total == 0, 1 - 1 / n_classes, bad / (good + bad))
    return skill, error / max(n_classes - 1, 1)


def coin_posterior(votes: Votes, state: FusionState) -> np.ndarray:
    """Posterior (rows, classes) of votes under a state of :func:`maximise_coins`."""
    sums = VoteCoins(votes)
    named, scale, _ = sums.posterior(state.prior, state.confusion[:, 0, 0], state.confusion[:, 0, 1])
    posterior = scale[:, None] * state.prior
    posterior[sums.item, sums.label] = named
    posterior[sums.known] = 0.0
    posterior[sums.known, votes.gold[sums.known]] = 1.0
    return posterior
