"""Grades: raters who take one for its neighbour more often than for one far off, each with a leaning of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError, shorten
from annotruth.fusion.base import FusionEstimator, check_iterations
from annotruth.fusion.dawid_skene import Expectation
from annotruth.fusion.em import MIN_EXPECTED_COUNT, log_of, votes_posterior
from annotruth.fusion.registry import register
from annotruth.fusion.state import FusionState
from annotruth.fusion.votes import Votes

Order = bool | str | Sequence[str] | None
_USUAL_LOG_NOISE = np.log(0.6)  # about four in five right; the middle of its prior
_REACH, _ROUNDS, _GOLDEN = 1.0, 12, (np.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class GraderState(FusionState):
    """What :class:`OrdinalDawidSkene` learns.

    Attributes
    ----------
    bias : (raters,) grades that a rater says too many, or too few
    log_noise : (raters,) logarithm of the standard deviation, in grades, of what a rater says
    """

    bias: np.ndarray = field(default_factory=lambda: np.empty(0))
    log_noise: np.ndarray = field(default_factory=lambda: np.empty(0))

    def for_raters(self, n_raters: int) -> Self:
        more = (0, n_raters - len(self.bias))
        bias, noise = np.pad(self.bias, more), np.pad(self.log_noise, more, constant_values=_USUAL_LOG_NOISE)
        return replace(super().for_raters(n_raters), bias=bias, log_noise=noise)


@register("ordinal-dawid-skene")
class OrdinalDawidSkene(FusionEstimator):
    """Dawid and Skene's model for grades: two numbers a rater, a leaning and a noise, make up the matrix.

    A rater sees the true grade, plus a bias, plus normal noise, and says the nearest grade. For ordered classes, and
    too few answers for whole matrices; errors that jump over grades need ``DawidSkene``.

    Parameters
    ----------
    max_iter : most iterations
    tol : stop when an iteration gains less log-likelihood than this per answer
    ordered : the order of classes whose names are no numbers: their names, lowest or highest first, as a list or with
        commas between them; True if ``classes`` are in order, which those of tables are only by chance
    scope : raters for the whole data set ("dataset") or for each case with masks on its own ("case")

    Attributes
    ----------
    state_ : ``state_.bias`` (raters,), in grades, and ``state_.log_noise``
    log_likelihood_ : (iterations,) with the log density of the priors of both; never falling

    Notes
    -----
    The bias has a standard normal prior, the logarithm of the noise a normal one around that of 0.6 grades.

    Examples
    --------
    >>> from annotruth import Annotations
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 5, 400)
    >>> heard = truth[:, None] + np.array([0.0, 0.0, 0.7]) + rng.normal(0, [0.3, 0.6, 0.5], (400, 3))
    >>> answers = np.clip(np.rint(heard), 0, 4).astype(int)
    >>> OrdinalDawidSkene().fit(Annotations.from_answers(answers)).state_.bias.round(1) + 0.0
    array([-0.1, -0.1,  0.7])
    """

    def __init__(self, max_iter: int = 100, tol: float = 1e-6, ordered: Order = None, scope: str = "dataset") -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.ordered = ordered
        self.scope = scope

    def check(self, annotations: Annotations) -> None:
        super().check(annotations)
        check_iterations(self.max_iter, self.tol)
        self._grades = grades_of(annotations.classes, self.ordered)

    def estimate(self, votes: Votes, start: FusionState | None = None) -> FusionState:
        teaching = votes.reweighted(np.where(votes.answered, votes.weight, 0.0))
        expect = Expectation(teaching)
        total = max(float(teaching.weight.sum()), MIN_EXPECTED_COUNT)
        n_answers = max(float(teaching.weight @ np.diff(votes.first_answer)), 1.0)
        bias, noise = np.zeros(votes.n_raters), np.full(votes.n_raters, _USUAL_LOG_NOISE)
        counts, classes = expect.vote_shares()
        if isinstance(start, GraderState):
            bias, noise = start.bias, start.log_noise
            counts, classes, _ = expect(np.maximum(start.prior, MIN_EXPECTED_COUNT), start.confusion)
        silent = votes.labelled_counts() == 0
        confusion = np.empty((votes.n_raters, votes.n_classes, votes.n_classes))
        by_grade = np.ix_(np.arange(votes.n_raters), self._grades, self._grades)
        path: list[float] = []
        converged = False
        while len(path) < self.max_iter and not converged:
            bias, noise = _maximise(counts[by_grade], bias, noise)
            confusion[by_grade] = grade_matrices(bias, noise, votes.n_classes)
            confusion[silent] = 1 / votes.n_classes
            frequency = classes / total
            counts, classes, likelihood = expect(frequency, confusion)
            path.append(likelihood - _penalty(bias, noise)[~silent].sum())
            converged = len(path) > 1 and path[-1] - path[-2] < self.tol * n_answers
        return GraderState(
            confusion, counts, frequency, np.array(path), converged, bias=np.where(silent, 0.0, bias),
            log_noise=np.where(silent, _USUAL_LOG_NOISE, noise),
        )  # fmt: skip

    def posterior(self, votes: Votes, state: FusionState) -> np.ndarray:
        return votes_posterior(votes, log_of(state.prior), log_of(state.confusion))[0]


def grades_of(classes: Sequence[str], ordered: Order) -> np.ndarray:
    """Numbers (classes,) of the classes in the order of their grades.

    Examples
    --------
    >>> grades_of(["high", "low", "medium"], "low, medium, high")
    array([1, 2, 0])
    """
    if ordered is True:
        return np.arange(len(classes))
    if not ordered:
        try:
            numbers = [float(name) for name in classes]
        except ValueError:
            numbers = []
        if numbers == sorted(numbers) and numbers:
            return np.arange(len(classes))
        raise InputError(
            f"The classes {shorten(list(classes))} have no order that their names tell. Give it, lowest or highest "
            f"first: --option ordered={','.join(classes[:3])}{',…' if len(classes) > 3 else ''}; if they have "
            "none, take dawid-skene."
        )
    if not isinstance(ordered, (str, list, tuple)):
        raise InputError(f"ordered names the classes in their order, or is true; found {ordered!r}.")
    names = [name.strip() for name in ordered.split(",")] if isinstance(ordered, str) else list(map(str, ordered))
    if sorted(names) != sorted(classes):
        raise InputError(
            f"ordered must name every class once: the classes are {shorten(list(classes))}, named are {shorten(names)}."
        )
    return np.array([list(classes).index(name) for name in names])


def grade_matrices(bias: np.ndarray, log_noise: np.ndarray, n_classes: int) -> np.ndarray:
    """Matrices (raters, classes, classes), [true, observed], of raters' biases and log noises (raters,).

    Examples
    --------
    >>> grade_matrices(np.array([0.0]), np.log([0.5]), 3).round(2)
    array([[[0.84, 0.16, 0.  ],
            [0.16, 0.68, 0.16],
            [0.  , 0.16, 0.84]]])
    """
    from scipy.special import ndtr

    true, edge = np.arange(n_classes)[:, None], np.arange(n_classes - 1) + 0.5
    below = ndtr((edge - true - bias[:, None, None]) / np.exp(log_noise)[:, None, None])
    closed = np.concatenate([np.zeros_like(below[..., :1]), below, np.ones_like(below[..., :1])], axis=2)
    if n_classes == 1:
        return np.ones((len(bias), 1, 1))
    matrices = np.maximum(np.diff(closed, axis=2), MIN_EXPECTED_COUNT)
    return matrices / matrices.sum(axis=2, keepdims=True)


def _penalty(bias: np.ndarray, log_noise: np.ndarray) -> np.ndarray:
    return (bias**2 + (log_noise - _USUAL_LOG_NOISE) ** 2) / 2


def _maximise(counts: np.ndarray, bias: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """M-step: the noise, then the bias, of every rater that explain the counts (raters, classes, classes) better."""
    n_classes = counts.shape[1]

    def value(own_bias: np.ndarray, own_noise: np.ndarray) -> np.ndarray:
        explained = (counts * np.log(grade_matrices(own_bias, own_noise, n_classes))).sum(axis=(1, 2))
        return np.asarray(explained - _penalty(own_bias, own_noise))

    noise = _climb(noise, lambda tried: value(bias, tried))
    return _climb(bias, lambda tried: value(tried, noise)), noise


def _climb(now: np.ndarray, value: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Golden-section search around every number (raters,); none gets worse."""
    low, high = now - _REACH, now + _REACH
    for _ in range(_ROUNDS):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        better = value(left) > value(right)
        low, high = np.where(better, low, left), np.where(better, right, high)
    found = (low + high) / 2
    return np.where(value(found) > value(now), found, now)
