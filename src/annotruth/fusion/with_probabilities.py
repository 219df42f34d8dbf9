"""Answers of raters and a classifier's probabilities, put together: ``annotruth.fuse_with``.

The classifier is any one, trained anyhow, that gave each item a probability of each class without having seen its
own answers (by cross-validation, say). These probabilities are the prior of the item's truth, made as sure or unsure as
raters prove it to be; raters' matrices are learnt beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion.base import FusionEstimator, check_iterations
from annotruth.fusion.em import MIN_EXPECTED_COUNT, confusion_from_counts, expected_counts, log_of, votes_posterior
from annotruth.fusion.state import FusionState
from annotruth.fusion.votes import Votes

_MIN_PROBABILITY = 1e-6
_SHARPNESS, _NEWTON_STEPS = (0.05, 5.0), 4  # between which the classifier's is sought
_SHARED_LABELS = 2.0  # that a rater is taken to have given as all of them do


@dataclass(frozen=True)
class ClassifierState(FusionState):
    """What :class:`FusedWith` learns.

    Attributes
    ----------
    sharpness : power to which the classifier's probabilities are raised: 1 = they are as sure as they should be, less =
        they were too sure
    """

    sharpness: float = 1.0


class FusedWith(FusionEstimator):
    """Dawid and Skene's model around a classifier's probabilities; what :func:`fuse_with` gives.

    Parameters
    ----------
    probabilities : (items, classes), rows sum to 1
    max_iter : most iterations
    tol : stop when an iteration gains less log-likelihood than this per answer

    Attributes
    ----------
    sharpness_ : power to which the probabilities are raised; below 1 the classifier was too sure of itself
    classifier_skill_ : how often the classifier's most probable class is expected to be right
    """

    warns_of_identifiability = False
    scope = "dataset"

    def __init__(self, probabilities: np.ndarray, max_iter: int = 100, tol: float = 1e-6) -> None:
        self.probabilities = probabilities
        self.max_iter = max_iter
        self.tol = tol

    def check(self, annotations: Annotations) -> None:
        super().check(annotations)
        check_iterations(self.max_iter, self.tol)
        if annotations.kind != "labels":
            raise InputError(
                "fuse_with takes a label table. For masks, train with a method that learns from all raters."
            )
        given, shape = np.asarray(self.probabilities), (len(annotations), len(annotations.classes))
        if given.shape != shape:
            raise InputError(
                f"The probabilities must be of {shape[0]} items and {shape[1]} classes, in the annotations' order, not "
                f"{given.shape}."
            )
        wrong = ~np.isfinite(given).all(axis=1) | (given < 0).any(axis=1) | (np.abs(given.sum(axis=1) - 1) > 1e-3)
        if wrong.any():
            item = annotations.items[int(np.flatnonzero(wrong)[0])]
            raise InputError(f"Item {item}: its {shape[1]} probabilities must be at least 0 and sum to 1.")

    def partial_fit(self, annotations: Annotations, *given: Any, **named: Any) -> Self:
        """Not possible: new items would lack the classifier's probabilities."""
        raise InputError("fuse_with takes all items at once, with a probability of each class for each of them.")

    @property
    def sharpness_(self) -> float:
        self._check_fitted()
        assert isinstance(self.state_, ClassifierState)
        return self.state_.sharpness

    @property
    def classifier_skill_(self) -> float:
        posterior = np.asarray(self.predict_proba())
        best = np.asarray(self.probabilities).argmax(axis=1)
        return float(posterior[np.arange(len(best)), best].mean())

    def estimate(self, votes: Votes, start: FusionState | None = None) -> FusionState:
        teaching = np.where(votes.answered, votes.weight, 0.0)
        n_answers, sharpness = max(float(len(votes.answers)), 1.0), 1.0
        posterior = self._prior(sharpness) * (1 + votes.vote_counts())
        posterior /= posterior.sum(axis=1, keepdims=True)
        if isinstance(start, ClassifierState):
            posterior, sharpness = self.posterior(votes, start), start.sharpness
        path: list[float] = []
        converged = False
        while len(path) < self.max_iter and not converged:
            counts = expected_counts(votes.answers, posterior, votes.n_raters, teaching)
            shared = counts.sum(axis=0) + np.eye(votes.n_classes)
            shared *= _SHARED_LABELS / shared.sum(axis=1, keepdims=True)
            confusion = confusion_from_counts(counts, shared)
            sharpness = self._sharpen(posterior, teaching, sharpness)
            posterior, evidence = votes_posterior(votes, log_of(self._prior(sharpness)), log_of(confusion))
            path.append(float(evidence @ teaching))
            converged = len(path) > 1 and abs(path[-1] - path[-2]) < self.tol * n_answers
        frequency = posterior.T @ teaching / max(teaching.sum(), 1.0)
        return ClassifierState(confusion, counts, frequency, converged=converged, sharpness=sharpness)

    def posterior(self, votes: Votes, state: FusionState) -> np.ndarray:
        assert isinstance(state, ClassifierState)
        return votes_posterior(votes, log_of(self._prior(state.sharpness)), log_of(state.confusion))[0]

    def _prior(self, sharpness: float) -> np.ndarray:
        """The classifier's probabilities (items, classes), sharpened or blunted."""
        powers = np.maximum(np.asarray(self.probabilities, dtype=np.float64), _MIN_PROBABILITY) ** sharpness
        return powers / powers.sum(axis=1, keepdims=True)

    def _sharpen(self, posterior: np.ndarray, weight: np.ndarray, now: float) -> float:
        """The sharpness under which the posterior (items, classes) is most probable; Newton's steps from ``now``."""
        logs = np.log(np.maximum(np.asarray(self.probabilities, dtype=np.float64), _MIN_PROBABILITY))
        for _ in range(_NEWTON_STEPS):
            prior = self._prior(now)
            mean = (prior * logs).sum(axis=1)
            slope = weight @ ((posterior * logs).sum(axis=1) - mean)
            curvature = weight @ ((prior * logs**2).sum(axis=1) - mean**2)
            now = float(np.clip(now + slope / max(curvature, MIN_EXPECTED_COUNT), *_SHARPNESS))
        return now


def fuse_with(probabilities: np.ndarray, annotations: Annotations) -> FusedWith:
    """Put raters' answers and any classifier's probabilities together.

    Parameters
    ----------
    probabilities : (items, classes) in the annotations' order, rows sum to 1; of a classifier that did not learn from
        the item's own answers, or it would confirm them
    annotations : a label table

    Returns
    -------
    An estimator that is fitted: ``predict()``, ``predict_proba()``, ``skill_``, ``ranking_``, and ``sharpness_``

    Notes
    -----
    In the spirit of CROWDLAB (Goh and others, 2022), which weighs raters and classifier by their agreement; here both
    follow from one likelihood.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 1000)
    >>> said = np.where(rng.random(1000) < 0.75, truth, 1 - truth)  # one answer an item
    >>> score = np.where(truth == 1, 1, -1) + rng.normal(0, 1.2, 1000)  # what a classifier makes of the item
    >>> probabilities = np.stack([1 / (1 + np.exp(2 * score)), 1 / (1 + np.exp(-2 * score))], axis=1)
    >>> answers = Annotations.from_answers(said[:, None])
    >>> fused = fuse_with(probabilities, answers)
    >>> bool((fused.predict() == truth).mean() > max((said == truth).mean(), ((score > 0) == truth).mean()) + 0.02)
    True
    """
    return FusedWith(np.asarray(probabilities)).fit(annotations)
