"""Votes that weigh more the better the rater is: what Wawa, Zero-Based Skill and M-MSR share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from annotruth.fusion.base import FusionEstimator
from annotruth.fusion.em import best_classes
from annotruth.fusion.majority import decide, summed_up
from annotruth.fusion.state import FusionState
from annotruth.fusion.votes import Votes
from annotruth.validation import MISSING_LABEL


@dataclass(frozen=True)
class WeightedState(FusionState):
    """What is learnt of raters whose votes weigh differently.

    Attributes
    ----------
    weight : (raters,) of a rater's votes; 0 for raters who came later
    """

    weight: np.ndarray = field(default_factory=lambda: np.empty(0))

    def for_raters(self, n_raters: int) -> Self:
        grown = np.pad(self.weight, (0, n_raters - len(self.weight)))
        return replace(super().for_raters(n_raters), weight=grown)


class WeightedVote(FusionEstimator):
    """Base of the estimators that give each rater's votes a weight of their own.

    The posterior is each class's share of the weights, so that it orders the classes, but is no probability that was
    learnt. ``state_.weight`` holds the weights (raters,).
    """

    warns_of_identifiability = False

    @abstractmethod
    def weigh(self, votes: Votes) -> tuple[np.ndarray, bool]:
        """Weights (raters,) of votes, and whether the iterations that they take settled."""

    def shares(self, scores: np.ndarray) -> np.ndarray:
        """Posterior (rows, classes) from the sums of weights (rows, classes)."""
        return score_shares(scores)

    def estimate(self, votes: Votes, start: FusionState | None = None) -> FusionState:
        weight, converged = self.weigh(votes)
        posterior = decide(votes, self._shares(votes, weight), np.zeros(votes.n_classes))
        found = summed_up(votes, posterior)
        return WeightedState(found.confusion, found.counts, found.prior, converged=converged, weight=weight)

    def posterior(self, votes: Votes, state: FusionState) -> np.ndarray:
        assert isinstance(state, WeightedState)
        return decide(votes, self._shares(votes, state.weight), state.prior)

    def _shares(self, votes: Votes, weight: np.ndarray) -> np.ndarray:
        return self.shares(votes.vote_counts(weight[votes.answers.rater]))


def score_shares(scores: np.ndarray) -> np.ndarray:
    """Each class's share of scores (rows, classes) of at least 0; all alike where there are none."""
    total = scores.sum(axis=1, keepdims=True)
    return np.where(total > 0, scores / np.where(total > 0, total, 1.0), 1 / scores.shape[1])


def agreement(votes: Votes, scores: np.ndarray) -> np.ndarray:
    """How often each rater's labels are those with the highest scores (rows, classes), or gold; (raters,), 0 to 1."""
    best = np.where(votes.gold == MISSING_LABEL, best_classes(scores), votes.gold)
    answers = votes.answers
    weight = votes.weight[answers.item]
    right = np.bincount(answers.rater, weight * (best[answers.item] == answers.label), minlength=votes.n_raters)
    total = np.bincount(answers.rater, weight, minlength=votes.n_raters)
    return right / np.where(total > 0, total, 1.0)
