"""Dawid and Skene's model for crowds: raters are of a few kinds, and all raters of a kind share one matrix."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion.base import FusionEstimator, check_iterations
from annotruth.fusion.dawid_skene import Expectation
from annotruth.fusion.dirichlet import divergence, mean_logs
from annotruth.fusion.em import confusion_from_counts, votes_posterior
from annotruth.fusion.registry import register
from annotruth.fusion.state import FusionState
from annotruth.fusion.votes import Votes

_RIGHT, _WRONG = 2.0, 1.0  # labels of each class that each kind of rater is taken to have got right, and wrong, before
_SHARED_LABELS = 10.0  # that a rater is taken to have given as all of them do, when kinds are first told apart
_TINY = 1e-300


@dataclass(frozen=True)
class ClusterState(FusionState):
    """What :class:`ClusteredDawidSkene` learns.

    Attributes
    ----------
    membership : (raters, clusters) how probably each rater is of each kind
    cluster_counts : (clusters, classes, classes) labels, [true, observed], of each kind, with the prior's
    cluster_sizes : (clusters,) raters of each kind, with the prior's
    """

    membership: np.ndarray = field(default_factory=lambda: np.empty((0, 1)))
    cluster_counts: np.ndarray = field(default_factory=lambda: np.empty((1, 0, 0)))
    cluster_sizes: np.ndarray = field(default_factory=lambda: np.ones(1))

    def for_raters(self, n_raters: int) -> Self:
        grown, n_before = super().for_raters(n_raters), len(self.membership)
        usual = self.cluster_sizes / self.cluster_sizes.sum()
        membership = np.vstack([self.membership, np.tile(usual, (n_raters - n_before, 1))])
        grown.confusion[n_before:] = np.tensordot(usual, confusion_from_counts(self.cluster_counts), axes=1)
        return replace(
            grown, membership=membership, counts=np.pad(self.counts, ((0, n_raters - n_before), (0, 0), (0, 0)))
        )


@register("clustered-dawid-skene")
class ClusteredDawidSkene(FusionEstimator):
    """Dawid and Skene's model with one matrix for each kind of rater, and every rater of one of a few kinds.

    For crowds with few answers a rater: five answers do not make a matrix, but they tell a spammer from a careful
    rater. Kinds that no rater needs stay empty.

    Parameters
    ----------
    clusters : most kinds of raters
    max_iter : most iterations
    tol : stop when an iteration gains less of the bound of the log evidence than this per answer
    scope : raters for the whole data set ("dataset") or for each case with masks on its own ("case")

    Attributes
    ----------
    membership_ : (raters, clusters) how probably each rater is of each kind, the largest kind first
    cluster_confusion_ : (clusters, classes, classes), [true, observed], of each kind
    confusion_ : of a rater, the mean of these, weighted by ``membership_``
    log_likelihood_ : (iterations,) lower bound of the log evidence, never falling

    Notes
    -----
    Variational Bayes; kinds start from the raters whose answers differ most from each other and from all.

    References
    ----------
    Moreno and others, Bayesian nonparametric crowdsourcing, 2015. Venanzi and others, Community-based Bayesian
    aggregation models for crowdsourcing, 2014 (where raters also differ within their kind).

    Examples
    --------
    >>> from annotruth import Annotations
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 400)
    >>> skill = np.repeat([0.9, 0.5], 100)  # a hundred careful raters, a hundred who guess
    >>> answers = np.where(rng.random((400, 200)) < skill, truth[:, None], 1 - truth[:, None])
    >>> answers[rng.random(answers.shape) > 0.05] = -1  # twenty answers a rater
    >>> fused = ClusteredDawidSkene().fit(Annotations.from_answers(answers))
    >>> bool(fused.skill_[:100].mean() > 0.8 > 0.65 > fused.skill_[100:].mean())
    True
    """

    def __init__(self, clusters: int = 4, max_iter: int = 200, tol: float = 1e-6, scope: str = "dataset") -> None:
        self.clusters = clusters
        self.max_iter = max_iter
        self.tol = tol
        self.scope = scope

    def check(self, annotations: Annotations) -> None:
        super().check(annotations)
        check_iterations(self.max_iter, self.tol)
        if not self.clusters >= 1:
            raise InputError(f"clusters must be at least 1, found {self.clusters}.")

    @property
    def membership_(self) -> np.ndarray:
        return self._clusters().membership

    @property
    def cluster_confusion_(self) -> np.ndarray:
        return confusion_from_counts(self._clusters().cluster_counts)

    def _clusters(self) -> ClusterState:
        self._check_fitted()
        if not isinstance(self.state_, ClusterState):
            raise InputError("With scope='case' each case has its own kinds of raters: see case_states_.")
        return self.state_

    def estimate(self, votes: Votes, start: FusionState | None = None) -> FusionState:
        teaching = votes.reweighted(np.where(votes.answered, votes.weight, 0.0))
        expect = Expectation(teaching)
        n_answers = max(float(teaching.weight @ np.diff(votes.first_answer)), 1.0)
        prior = _prior_counts(votes.n_classes)
        counts, classes = expect.vote_shares()
        if isinstance(start, ClusterState):
            membership = start.membership
            counts, classes, _ = expect(start.prior, _typical(membership, start.cluster_counts))
        else:
            membership = first_membership(counts, min(int(self.clusters), votes.n_raters))
        n_clusters = membership.shape[1]
        alone, ones = np.full(n_clusters, 1 / n_clusters), np.ones(votes.n_classes)
        path: list[float] = []
        converged = False
        while len(path) < self.max_iter and not converged:
            labels = prior + np.tensordot(membership.T, counts, axes=1)
            sizes, items = alone + membership.sum(axis=0), 1.0 + classes
            # A rater's kind, given how often each kind would give the answers that this one gave
            told = mean_logs(sizes) + np.tensordot(counts, mean_logs(labels), axes=([1, 2], [1, 2]))
            told -= told.max(axis=1, keepdims=True)
            membership = np.exp(told)
            membership /= membership.sum(axis=1, keepdims=True)
            counts, classes, likelihood = expect(np.exp(mean_logs(items)), _typical(membership, labels))
            kinds = (membership * (mean_logs(sizes) - np.log(np.maximum(membership, _TINY)))).sum()
            given = np.broadcast_to(prior, labels.shape)
            path.append(
                float(likelihood + kinds) - divergence(labels, given) - divergence(sizes, alone)
                - divergence(items, ones)
            )  # fmt: skip
            converged = len(path) > 1 and path[-1] - path[-2] < self.tol * n_answers
        order = np.argsort(-membership.sum(axis=0), kind="stable")
        membership, labels, sizes = membership[:, order], labels[order], sizes[order]
        confusion = np.tensordot(membership, confusion_from_counts(labels), axes=1)
        silent = votes.labelled_counts() == 0
        confusion[silent] = 1 / votes.n_classes
        common = np.exp(mean_logs(items))
        return ClusterState(
            confusion, counts, common / common.sum(), np.array(path), converged, membership=membership,
            cluster_counts=labels, cluster_sizes=sizes,
        )  # fmt: skip

    def posterior(self, votes: Votes, state: FusionState) -> np.ndarray:
        assert isinstance(state, ClusterState)
        logs = np.tensordot(state.membership, mean_logs(state.cluster_counts), axes=1)
        return votes_posterior(votes, np.log(state.prior), logs)[0]

    def _evidence(self) -> np.ndarray:
        """Labels behind each rater's matrix, those of all raters of its kind; intervals add the uniform prior, 1."""
        self._check_fitted()
        if not isinstance(self.state_, ClusterState):
            return self.expected_counts_ + _prior_counts(len(self.classes_)) - 1.0
        return np.tensordot(self.state_.membership, self.state_.cluster_counts, axes=1) - 1.0


def first_membership(counts: np.ndarray, n_clusters: int) -> np.ndarray:
    """Kinds to start from (raters, clusters): each rater's is the one whose first member is most like it.

    Parameters
    ----------
    counts : (raters, classes, classes) as the shares of the votes have them

    Examples
    --------
    >>> first_membership(np.array([[[9.0, 1], [1, 9]], [[5, 5], [5, 5]], [[8, 1], [2, 9]]]), 2).round(1)
    array([[0.9, 0.1],
           [0.1, 0.9],
           [0.9, 0.1]])
    """
    shared = counts.sum(axis=0) + np.eye(counts.shape[1])
    matrices = confusion_from_counts(counts, _SHARED_LABELS * shared / shared.sum(axis=1, keepdims=True))
    flat = matrices.reshape(len(counts), -1)
    firsts = [int(((flat - flat.mean(axis=0)) ** 2).sum(axis=1).argmin())]  # the most usual rater, then the least alike
    distance = ((flat - flat[firsts[0]]) ** 2).sum(axis=1)
    for _ in range(n_clusters - 1):
        firsts.append(int(distance.argmax()))
        distance = np.minimum(distance, ((flat - flat[firsts[-1]]) ** 2).sum(axis=1))
    nearest = np.stack([((flat - flat[first]) ** 2).sum(axis=1) for first in firsts], axis=1).argmin(axis=1)
    sure = 0.9 if n_clusters > 1 else 1.0
    membership = np.full((len(counts), n_clusters), (1 - sure) / max(n_clusters - 1, 1))
    membership[np.arange(len(counts)), nearest] = sure
    return membership


def _prior_counts(n_classes: int) -> np.ndarray:
    return np.where(np.eye(n_classes, dtype=bool), _RIGHT, _WRONG / max(n_classes - 1, 1))


def _typical(membership: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Geometric means (raters, classes, classes) of a rater's chances, over what is not known of it."""
    return np.exp(np.tensordot(membership, mean_logs(labels), axes=1))
