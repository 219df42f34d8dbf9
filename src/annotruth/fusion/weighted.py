"""Votes that weigh more the better the rater is: what Wawa, Zero-Based Skill and M-MSR share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from annotruth.fusion._em import row_loops
from annotruth.fusion.base import FusionEstimator
from annotruth.fusion.em import (
    MAX_TIE,
    MIN_EXPECTED_COUNT,
    by_truth,
    confusion_from_counts,
    own_rows,
    split_lanes,
    unrolled_classes,
)
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
        counts, classes = count_shares(votes, weight)
        prior = classes / max(classes.sum(), MIN_EXPECTED_COUNT)
        return WeightedState(confusion_from_counts(counts), counts, prior, converged=converged, weight=weight)

    def posterior(self, votes: Votes, state: FusionState) -> np.ndarray:
        assert isinstance(state, WeightedState)
        return self.share(votes, state.weight, state.prior)

    def share(self, votes: Votes, weight: np.ndarray, prior: np.ndarray) -> np.ndarray:
        """Posterior (rows, classes) of votes that weigh so much (raters,), and of the prior where nobody voted."""
        start, gold, answers = votes.first_answer, votes.gold, votes.answers
        posterior, loops = np.empty((votes.n_rows, votes.n_classes)), row_loops(len(answers))
        unrolled = unrolled_classes(len(answers), votes.n_classes)
        own = np.ascontiguousarray(weight, dtype=np.float64), np.ascontiguousarray(prior, dtype=np.float64)

        def work(first: int, last: int) -> None:
            loops.weighted_rows(first, last, start, answers.rater, answers.label, gold, *own, posterior, unrolled)

        run_parts(work, split_lanes(start, 0))
        return posterior


def count_shares(votes: Votes, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the shares of votes that weigh so much (raters,) add up to, in one pass over the answers.

    Returns
    -------
    The expected counts (raters, classes, classes), and how many items or pixels there are of each class (classes,).
    """
    start, answers, n_raters, n_classes = votes.first_answer, votes.answers, votes.n_raters, votes.n_classes
    loops, size = row_loops(len(answers)), n_raters * n_classes**2
    lanes, unrolled = split_lanes(start, size), unrolled_classes(len(answers), n_classes)
    counts, classes = own_rows(len(lanes), size), own_rows(len(lanes), n_classes)
    weight = np.ascontiguousarray(weight, dtype=np.float64)

    def work(lane: int, first: int, last: int) -> None:
        loops.count_weighted_rows(
            first, last, start, answers.rater, answers.label, votes.weight, votes.gold, weight, counts[lane],
            classes[lane], unrolled,
        )  # fmt: skip

    run_parts(work, [(lane, *part) for lane, part in enumerate(lanes)])
    return by_truth(counts.sum(axis=0), n_raters, n_classes), classes.sum(axis=0)[:n_classes]


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
    right, unrolled = own_rows(len(lanes), n_raters), unrolled_classes(len(answers), votes.n_classes)
    weight = np.ascontiguousarray(weight, dtype=np.float64)

    def work(lane: int, first: int, last: int) -> None:
        loops.agree_rows(
            first, last, start, answers.rater, answers.label, votes.weight, votes.gold, weight, MAX_TIE, right[lane],
            votes.n_classes, unrolled,
        )  # fmt: skip

    run_parts(work, [(lane, *part) for lane, part in enumerate(lanes)])
    total = votes.labelled_counts()
    return np.asarray(right.sum(axis=0)[:n_raters] / np.where(total > 0, total, 1.0))
