"""Estimates made in several places put together, and labels made of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from annotruth.fusion.em import confusion_from_counts
from annotruth.fusion.maximise import Estimate

TIE = 1e-9
"""Classes whose posteriors differ by less are tied; the one that comes first in the classes wins."""


def best_classes(posterior: np.ndarray) -> np.ndarray:
    """Most probable class of each row (rows, classes), the first of those that are tied.

    Examples
    --------
    >>> best_classes(np.array([[0.2, 0.4, 0.4], [0.5, 0.2, 0.3]]))
    array([1, 0])
    """
    tied = posterior >= posterior.max(axis=1, keepdims=True) - TIE
    return tied.argmax(axis=1)


def for_all_raters(confusion: np.ndarray, n_raters: int) -> np.ndarray:
    """Add matrices that say nothing for raters who came later, (n_raters, classes, classes).

    Examples
    --------
    >>> for_all_raters(np.eye(2)[None], 2)[1]
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    n_classes = confusion.shape[-1]
    grown = np.full((n_raters, n_classes, n_classes), 1 / n_classes)
    grown[: len(confusion)] = confusion
    return grown


def pool(cases: Sequence[Estimate], sizes: np.ndarray, n_raters: int) -> Estimate:
    """Sum up estimates of single cases: counts add up, priors are averaged by the cases' sizes (cases,).

    The log-likelihoods add up too, those of cases that settled early being carried on.
    """
    n_classes = len(cases[0].prior)
    counts = np.zeros((n_raters, n_classes, n_classes))
    for case in cases:
        counts[: len(case.counts)] += case.counts
    path = np.zeros(max(case.n_iter for case in cases))
    for case in cases:
        path[: case.n_iter] += case.log_likelihood
        path[case.n_iter :] += case.log_likelihood[-1:]
    prior = np.average([case.prior for case in cases], axis=0, weights=np.maximum(sizes, 1))
    return Estimate(confusion_from_counts(counts), counts, prior, path, all(case.converged for case in cases))
