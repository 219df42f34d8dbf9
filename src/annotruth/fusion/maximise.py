"""The loop of expectation-maximisation, without ever keeping a posterior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from annotruth.fusion._em.em_kernels import expect_rows, share_rows
from annotruth.fusion.em import by_label, by_truth, confusion_from_counts, log_of, own_rows, split_lanes
from annotruth.fusion.votes import Votes
from annotruth.parallel.threads import run_parts

_UNROLL_ANSWERS, _UNROLL_CLASSES = 2**18, 16  # from so many answers on, code for just this number of classes pays


@dataclass(frozen=True)
class Estimate:
    """What expectation-maximisation found.

    Attributes
    ----------
    confusion, counts : (raters, classes, classes) matrices, and the expected counts under them
    prior : (classes,)
    log_likelihood : (iterations,) never falling; with pseudo-counts, plus the log density of that prior
    converged : whether the stopping rule was met
    """

    confusion: np.ndarray
    counts: np.ndarray
    prior: np.ndarray
    log_likelihood: np.ndarray
    converged: bool

    @property
    def n_iter(self) -> int:
        return len(self.log_likelihood)


def maximise(
    votes: Votes,
    *,
    prior: Literal["estimated", "votes"] | np.ndarray,
    max_iter: int,
    tol: float,
    stop: Literal["likelihood", "parameters"],
    pseudo_counts: np.ndarray | None = None,
    one_coin: bool = False,
    start: tuple[np.ndarray, np.ndarray] | None = None,
) -> Estimate:
    """Alternate M- and E-steps until nothing changes any more.

    Parameters
    ----------
    prior : "estimated" anew in each M-step; "votes" fixed at the share of each class among the votes; or given
    stop : when the log-likelihood per answer gains less than ``tol``, or no parameter moves by more than ``tol``
    start : (confusion, prior) to go on from; by default the raters' vote shares stand in for the first posterior
    """
    teaching = votes.reweighted(np.where(votes.answered, votes.weight, 0.0))
    expectation = _Expectation(teaching)
    total = float(teaching.weight.sum())
    n_answers = max(float(teaching.weight @ np.diff(votes.first_answer)), 1.0)
    counts, classes, _ = expectation(None)
    frequency = _shares(classes, total) if isinstance(prior, str) else np.asarray(prior, dtype=np.float64)
    if start is not None:
        if isinstance(prior, str) and prior == "estimated":  # a class that is new must not stay at zero for ever
            frequency = np.where(start[1] > 0, start[1], frequency)
            frequency = frequency / frequency.sum()
        counts, classes, _ = expectation((frequency, start[0]))
    path: list[float] = []
    confusion, converged = np.zeros_like(counts), False
    while len(path) < max_iter and not converged:
        before, before_prior = confusion, frequency
        confusion = confusion_from_counts(counts, pseudo_counts, one_coin=one_coin)
        if isinstance(prior, str) and prior == "estimated":
            frequency = _shares(classes, total)
        counts, classes, likelihood = expectation((frequency, confusion))
        path.append(likelihood + (0.0 if pseudo_counts is None else float((pseudo_counts * np.log(confusion)).sum())))
        if len(path) > 1 and stop == "likelihood":
            converged = path[-1] - path[-2] < tol * n_answers
        elif len(path) > 1:
            moved = max(np.abs(confusion - before).max(), np.abs(frequency - before_prior).max())
            converged = bool(moved <= tol)
    return Estimate(confusion, counts, frequency, np.array(path), converged)


def _shares(classes: np.ndarray, total: float) -> np.ndarray:
    """How common each class is (classes,); where nobody labelled anything, all alike."""
    return classes / total if total > 0 else np.full(len(classes), 1 / len(classes))


class _Expectation:
    """The E-step and the sums of the M-step in one pass over the votes, time and again with the same memory."""

    def __init__(self, votes: Votes) -> None:
        self._votes = votes
        self._n_cells = votes.n_raters * votes.n_classes**2
        self._lanes = [(number, *part) for number, part in enumerate(split_lanes(votes.first_answer, self._n_cells))]
        self._counts = own_rows(len(self._lanes), self._n_cells)
        self._classes = own_rows(len(self._lanes), votes.n_classes)
        many = len(votes.answers) >= _UNROLL_ANSWERS and votes.n_classes <= _UNROLL_CLASSES
        self._unrolled = (0,) * votes.n_classes if many else ()

    def __call__(self, parameters: tuple[np.ndarray, np.ndarray] | None) -> tuple[np.ndarray, np.ndarray, float]:
        """Take the expectation under (prior, confusion); without, take the shares of the votes as posterior.

        Returns
        -------
        expected counts (raters, classes, classes), expected items per class (classes,), log-likelihood
        """
        votes, n_classes, unrolled = self._votes, self._votes.n_classes, self._unrolled
        start, cell, label, weight, gold = votes.first_answer, votes.cell, votes.answers.label, votes.weight, votes.gold
        if parameters is not None:
            log_prior, seen = log_of(parameters[0])[None], by_label(parameters[1])
            np.log(seen, out=seen)  # in place: with many raters the matrices are large

        def work(lane: int, first: int, last: int) -> float:
            counts, classes = self._counts[lane], self._classes[lane]
            counts[:], classes[:] = 0.0, 0.0
            if parameters is None:
                share_rows(first, last, start, cell, label, weight, gold, counts, classes, n_classes)
                return 0.0
            return expect_rows(first, last, start, cell, weight, gold, log_prior, seen, counts, classes, unrolled)

        likelihood = run_parts(work, self._lanes)
        counts = by_truth(self._counts.sum(axis=0), votes.n_raters, n_classes)
        return counts, self._classes.sum(axis=0)[:n_classes], float(sum(likelihood))
