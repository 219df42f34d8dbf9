"""Dirichlet distributions: mean logarithms, divergences, and the one that explains many."""

from __future__ import annotations

import numpy as np

_MIN_COUNT, _MAX_COUNT = 1e-3, 100.0  # a prior weighs no more, however alike all raters are


def mean_logs(counts: np.ndarray) -> np.ndarray:
    """Expectations of the logarithms under Dirichlet distributions of these counts (…, k)."""
    from scipy.special import digamma

    return np.asarray(digamma(counts) - digamma(counts.sum(axis=-1, keepdims=True)))


def divergence(counts: np.ndarray, prior: np.ndarray) -> float:
    """Kullback-Leibler divergence of Dirichlet distributions (…, k) from their priors, summed."""
    from scipy.special import gammaln

    inside = (gammaln(prior) - gammaln(counts) + (counts - prior) * mean_logs(counts)).sum(axis=-1)
    return float((gammaln(counts.sum(axis=-1)) - gammaln(prior.sum(axis=-1)) + inside).sum())


def fit_counts(logs: np.ndarray, start: np.ndarray, rounds: int = 30) -> np.ndarray:
    """Counts (…, k) of the Dirichlet distribution under which mean logarithms (…, k) are most probable.

    Minka's fixed point, every round of which is an improvement.

    Examples
    --------
    >>> true = np.array([8.0, 2.0])
    >>> fit_counts(mean_logs(true), np.ones(2), rounds=200).round(2)
    array([8., 2.])
    """
    from scipy.special import digamma

    counts = start
    for _ in range(rounds):
        counts = np.clip(_inverse_digamma(digamma(counts.sum(axis=-1, keepdims=True)) + logs), _MIN_COUNT, _MAX_COUNT)
    return counts


def _inverse_digamma(value: np.ndarray) -> np.ndarray:
    from scipy.special import digamma, polygamma

    found = np.where(value >= -2.22, np.exp(np.minimum(value, 20.0)) + 0.5, -1 / np.minimum(value + 0.5772156649, -0.1))
    for _ in range(6):
        found = found - (digamma(found) - value) / polygamma(1, found)
    return np.asarray(found)
