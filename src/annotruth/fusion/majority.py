"""Fusion by counting votes: the majority's label, or the mean of all labels."""

from __future__ import annotations

import numpy as np

from annotruth.fusion.base import FusionEstimator
from annotruth.fusion.em import LEAST_COUNT, confusion_from_counts, expected_counts
from annotruth.fusion.maximise import Estimate
from annotruth.fusion.votes import Votes
from annotruth.validation import MISSING_LABEL


class MeanLabel(FusionEstimator):
    """The share of the votes that each class has, as a soft label.

    Parameters
    ----------
    scope : whether ``confusion_`` is all there is ("dataset"), or ``case_confusion_`` is given too ("case")

    Examples
    --------
    >>> from annotruth import Annotations
    >>> answers = Annotations.from_answers(np.array([[0, 0, 1], [1, 1, -1]]))
    >>> MeanLabel().fit(answers).predict_proba().round(2)
    array([[0.67, 0.33],
           [0.  , 1.  ]])
    """

    _warns_of_identifiability = False

    def __init__(self, scope: str = "dataset") -> None:
        self.scope = scope

    def _estimate(self, votes: Votes, start: tuple[np.ndarray, np.ndarray] | None) -> Estimate:
        answered = votes.answered
        posterior = self._posterior(votes, np.empty(0), np.zeros(votes.n_classes))
        weight = np.where(answered, votes.weight, 0.0)
        counts = expected_counts(votes.answers, posterior, votes.n_raters, weight)
        prior = (posterior * weight[:, None]).sum(axis=0) / max(weight.sum(), LEAST_COUNT)
        return Estimate(confusion_from_counts(counts), counts, prior, np.empty(0), converged=True)

    def _posterior(self, votes: Votes, confusion: np.ndarray, prior: np.ndarray) -> np.ndarray:
        counts = votes.vote_counts()
        posterior = np.where(votes.answered[:, None], self._shares(counts), prior)
        known = np.flatnonzero(votes.gold != MISSING_LABEL)
        posterior[known] = np.eye(votes.n_classes)[votes.gold[known]]
        return posterior

    def _shares(self, counts: np.ndarray) -> np.ndarray:
        """Posterior (rows, classes) from vote counts (rows, classes)."""
        return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)


class MajorityVote(MeanLabel):
    """The label that most raters gave.

    Where several classes have as many votes, ``predict`` gives the one that comes first in the classes, and
    ``predict_proba`` shares the probability among them, so that ties can be seen.

    Parameters
    ----------
    scope : whether ``confusion_`` is all there is ("dataset"), or ``case_confusion_`` is given too ("case")

    Examples
    --------
    >>> from annotruth import Annotations
    >>> vote = MajorityVote().fit(Annotations.from_answers(np.array([[0, 1, 1], [2, 1, -1]])))
    >>> vote.predict()
    array([1, 1])
    >>> vote.predict_proba()
    array([[0. , 1. , 0. ],
           [0. , 0.5, 0.5]])
    """

    def _shares(self, counts: np.ndarray) -> np.ndarray:
        most = counts == counts.max(axis=1, keepdims=True, initial=0)
        return most / most.sum(axis=1, keepdims=True)
