"""Dawid and Skene's model as Bayesians have it: matrices are not guessed, but averaged over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion.base import FusionEstimator, check_iterations
from annotruth.fusion.dawid_skene import Expectation
from annotruth.fusion.dirichlet import divergence, fit_counts, mean_logs
from annotruth.fusion.em import confusion_from_counts, votes_posterior
from annotruth.fusion.registry import register
from annotruth.fusion.state import FusionState
from annotruth.fusion.votes import Votes

_DRAWN_ITERATIONS = 10  # of items drawn anew, from the prior that all items taught


@dataclass(frozen=True)
class DirichletState(FusionState):
    """What :class:`IBCC` learns.

    Attributes
    ----------
    prior_counts : (classes, classes) labels, [true, observed], that every rater is taken to have given before
    """

    prior_counts: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))

    def for_raters(self, n_raters: int) -> Self:
        grown = super().for_raters(n_raters)
        n_before = len(self.counts)
        usual = confusion_from_counts(self.prior_counts[None])[0]
        grown.confusion[n_before:] = usual
        more = ((0, n_raters - n_before), (0, 0), (0, 0))
        return replace(grown, counts=np.pad(self.counts, more))


@register("ibcc")
class IBCC(FusionEstimator):
    """Independent Bayesian classifier combination: Dawid and Skene's model with priors, by variational Bayes.

    A rater with few answers is taken for about as good as the prior says, and its answers weigh accordingly; by maximum
    likelihood such a rater looks perfect, or hopeless.

    Parameters
    ----------
    right, wrong : labels of each class that every rater is taken to have got right, and wrong, before; the wrong ones
        are spread over the other classes
    max_iter : most iterations
    tol : stop when an iteration gains less of the bound of the log evidence than this per answer
    scope : matrices for the whole data set ("dataset") or for each case with masks on its own ("case")

    Attributes
    ----------
    log_likelihood_ : (iterations,) lower bound of the log evidence, never falling
    confusion_ : means of the matrices

    References
    ----------
    Kim and Ghahramani, Bayesian classifier combination, 2012. Simpson and others, Dynamic Bayesian combination of
    multiple imperfect classifiers, 2013.

    Examples
    --------
    >>> from annotruth import Annotations
    >>> fused = IBCC().fit(Annotations.from_answers(np.array([[0, 0, 1], [1, 1, 1], [0, 0, 1], [1, 1, -1]])))
    >>> fused.skill_.round(2)
    array([0.79, 0.79, 0.58])
    """

    def __init__(
        self, right: float = 2.0, wrong: float = 1.0, max_iter: int = 200, tol: float = 1e-6, scope: str = "dataset"
    ) -> None:
        self.right = right
        self.wrong = wrong
        self.max_iter = max_iter
        self.tol = tol
        self.scope = scope

    def check(self, annotations: Annotations) -> None:
        super().check(annotations)
        check_iterations(self.max_iter, self.tol)
        if not (self.right > 0 and self.wrong > 0):
            raise InputError(f"right and wrong must be positive counts, found {self.right} and {self.wrong}.")

    def pseudo_counts(self, raters: Sequence[str], n_classes: int) -> np.ndarray:
        beside = self.wrong / max(n_classes - 1, 1)
        one = np.where(np.eye(n_classes, dtype=bool), float(self.right), beside)
        return np.broadcast_to(one, (len(raters), n_classes, n_classes))

    def learn_prior(self, counts: np.ndarray, prior: np.ndarray) -> np.ndarray:
        """The prior (classes, classes) of the next round, given raters' counts (raters, classes, classes)."""
        return prior

    def estimate(self, votes: Votes, start: FusionState | None = None) -> FusionState:
        teaching = votes.reweighted(np.where(votes.answered, votes.weight, 0.0))
        expect = Expectation(teaching)
        n_answers = max(float(teaching.weight @ np.diff(votes.first_answer)), 1.0)
        prior = self.pseudo_counts(("any",), votes.n_classes)[0]
        counts, classes = expect.vote_shares()
        if isinstance(start, DirichletState):
            prior = start.prior_counts
            counts, classes, _ = expect(start.prior, _typical(start.counts + prior))
        path: list[float] = []
        converged = False
        while len(path) < self.max_iter and not converged:
            prior = self.learn_prior(counts, prior)
            labels, items = prior + counts, 1.0 + classes
            counts, classes, likelihood = expect(_typical(items), _typical(labels))
            path.append(likelihood - divergence(labels, np.broadcast_to(prior, labels.shape)) - divergence(
                items, np.ones_like(items)))  # fmt: skip
            converged = len(path) > 1 and path[-1] - path[-2] < self.tol * n_answers
        common = _typical(1.0 + classes)
        return DirichletState(
            confusion_from_counts(counts, prior), counts, common / common.sum(), np.array(path), converged,
            prior_counts=np.array(prior),
        )  # fmt: skip

    def posterior(self, votes: Votes, state: FusionState) -> np.ndarray:
        assert isinstance(state, DirichletState)
        return votes_posterior(votes, np.log(state.prior), mean_logs(state.counts + state.prior_counts))[0]

    def _evidence(self) -> np.ndarray:
        """Counts to which the intervals add the uniform prior of Dirichlet distributions, 1."""
        self._check_fitted()
        own = getattr(self.state_, "prior_counts", self.pseudo_counts(self.raters_, len(self.classes_)))
        return self.expected_counts_ + own - 1.0


@register("hierarchical-dawid-skene")
class HierarchicalDawidSkene(IBCC):
    """:class:`IBCC` whose prior is learnt from all raters: what is usual fills in for those with few answers.

    For crowds of many raters with few answers each. Parameters are those of :class:`IBCC`; ``right`` and ``wrong`` are
    where the prior starts from.

    References
    ----------
    Paun and others, Comparing Bayesian models of annotation, 2018 (its hierarchical Dawid-Skene, by empirical Bayes).

    Examples
    --------
    >>> from annotruth import Annotations
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 200)
    >>> skill = rng.uniform(0.6, 1.0, 60)
    >>> answers = np.where(rng.random((200, 60)) < skill, truth[:, None], 1 - truth[:, None])
    >>> answers[rng.random(answers.shape) > 0.1] = -1  # twenty answers a rater
    >>> fused = HierarchicalDawidSkene().fit(Annotations.from_answers(answers))
    >>> prior = fused.state_.prior_counts
    >>> round(float(prior.trace() / prior.sum()), 1)
    0.8
    """

    def learn_prior(self, counts: np.ndarray, prior: np.ndarray) -> np.ndarray:
        answered = counts.sum(axis=(1, 2)) > 0
        if not answered.any():
            return prior
        return fit_counts(mean_logs(counts[answered] + prior).mean(axis=0), prior)

    def estimate_drawn(
        self, votes: Votes, weights: Iterable[np.ndarray], start: FusionState
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """As the base's, in few iterations: the prior's mean follows at once, its weight would take hundreds."""
        brief = HierarchicalDawidSkene(max_iter=min(self.max_iter, _DRAWN_ITERATIONS), tol=self.tol)
        return FusionEstimator.estimate_drawn(brief, votes, weights, start)


def _typical(counts: np.ndarray) -> np.ndarray:
    """Geometric means of the probabilities that Dirichlet distributions (…, k) give; they sum to less than 1."""
    return np.exp(mean_logs(counts))
