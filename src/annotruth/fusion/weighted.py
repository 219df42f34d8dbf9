"""Votes that weigh more the better the rater is: what Wawa, Zero-Based Skill and M-MSR share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from annotruth.fusion._em import row_loops
from annotruth.fusion.base import FusionEstimator
from annotruth.fusion.em import MAX_TIE, own_rows, split_lanes
from annotruth.fusion.majority import summed_up
from annotruth.fusion.state import FusionState
from annotruth.fusion.votes import Votes
from annotruth.parallel.threads import run_parts


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

    def estimate(self, votes: Votes, start: FusionState | None = None) -> FusionState:
        weight, converged = self.weigh(votes)
        posterior = self.share(votes, weight, np.zeros(votes.n_classes))
        found = summed_up(votes, posterior)
        return WeightedState(found.confusion, found.counts, found.prior, converged=converged, weight=weight)

    def posterior(self, votes: Votes, state: FusionState) -> np.ndarray:
        assert isinstance(state, WeightedState)
        return self.share(votes, state.weight, state.prior)

    def share(self, votes: Votes, weight: np.ndarray, prior: np.ndarray) -> np.ndarray:
        """Posterior (rows, classes) of votes that weigh so much (raters,), and of the prior where nobody voted."""
        start, gold, answers = votes.first_answer, votes.gold, votes.answers
        posterior, loops = np.empty((votes.n_rows, votes.n_classes)), row_loops(len(answers))
        own = np.ascontiguousarray(weight, dtype=np.float64), np.ascontiguousarray(prior, dtype=np.float64)

        def work(first: int, last: int) -> None:
            loops.weighted_rows(first, last, start, answers.rater, answers.label, gold, *own, posterior)

        run_parts(work, split_lanes(start, 0))
        return posterior


def score_shares(scores: np.ndarray) -> np.ndarray:
    """Each class's share of scores (rows, classes) of at least 0; all alike where there are none."""
    total = scores.sum(axis=1, keepdims=True)
    return np.where(total > 0, scores / np.where(total > 0, total, 1.0), 1 / scores.shape[1])


def agreement(votes: Votes, weight: np.ndarray) -> np.ndarray:
    """How often each rater's labels are those that votes of such weights (raters,) elect, or gold; (raters,), 0 to 1.

    Examples
    --------
    >>> from annotruth.data.answers import answers_from_matrix
    >>> answers, _ = answers_from_matrix(np.array([[0, 0, 1], [1, 1, 1]]), 2)
    >>> agreement(Votes.from_answers(answers, 2, 3, 2), np.ones(3))
    array([1. , 1. , 0.5])
    """
    start, answers, n_raters = votes.first_answer, votes.answers, votes.n_raters
    loops, lanes = row_loops(len(answers)), split_lanes(start, n_raters)
    right = own_rows(len(lanes), n_raters)
    weight = np.ascontiguousarray(weight, dtype=np.float64)

    def work(lane: int, first: int, last: int) -> None:
        loops.agree_rows(
            first, last, start, answers.rater, answers.label, votes.weight, votes.gold, weight, MAX_TIE, right[lane],
            votes.n_classes,
        )  # fmt: skip

    run_parts(work, [(lane, *part) for lane, part in enumerate(lanes)])
    total = votes.labelled_counts()
    return np.asarray(right.sum(axis=0)[:n_raters] / np.where(total > 0, total, 1.0))
