"""Dawid-Skene: one confusion matrix per rater, by expectation-maximisation. The loop, its two steps, the estimator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError, shorten
from annotruth.fusion._em import row_loops
from annotruth.fusion.base import FusionEstimator, check_iterations, too_many_matrices
from annotruth.fusion.em import (
    MIN_EXPECTED_COUNT,
    by_label,
    by_truth,
    confusion_from_counts,
    log_of,
    own_rows,
    split_lanes,
    unrolled_classes,
    votes_posterior,
)
from annotruth.fusion.one_coin import CoinState, coin_posterior, maximise_coin_sums, maximise_coins
from annotruth.fusion.registry import register
from annotruth.fusion.state import FusionState, StreamedVotes, VoteSums
from annotruth.fusion.votes import Votes
from annotruth.parallel.threads import run_parts
from annotruth.validation import MISSING_LABEL, one_of

ConfusionPrior = np.ndarray | Mapping[str, np.ndarray] | None
_MAX_TOGETHER = 2**22  # numbers in the arrays of replicates that are estimated together
_MAX_ITER_TOGETHER, _TOL_TOGETHER = 200, 3e-5  # far below the spread of replicates


def maximise(
    votes: Votes,
    *,
    prior: Literal["estimated", "votes"] | np.ndarray,
    max_iter: int,
    tol: float,
    stop: Literal["likelihood", "parameters"],
    pseudo_counts: np.ndarray | None = None,
    one_coin: bool = False,
    start: FusionState | None = None,
) -> FusionState:
    """Alternate M- and E-steps until nothing changes any more.

    Parameters
    ----------
    prior : "estimated" anew in each M-step; "votes" fixed at the share of each class among the votes; or given
    stop : when the log-likelihood per answer gains less than ``tol``, or no parameter moves by more than ``tol``
    start : state to go on from; by default the raters' vote shares stand in for the first posterior
    """
    teaching = votes.reweighted(np.where(votes.answered, votes.weight, 0.0))
    return maximise_sums(
        Expectation(teaching), prior=prior, max_iter=max_iter, tol=tol, stop=stop, pseudo_counts=pseudo_counts,
        one_coin=one_coin, start=start,
    )  # fmt: skip


def maximise_sums(
    expect: VoteSums,
    *,
    prior: Literal["estimated", "votes"] | np.ndarray,
    max_iter: int,
    tol: float,
    stop: Literal["likelihood", "parameters"],
    pseudo_counts: np.ndarray | None = None,
    one_coin: bool = False,
    start: FusionState | None = None,
) -> FusionState:
    """Do so given who sums up over all votes, wherever these are; parameters are those of :func:`maximise`."""
    total, n_answers = expect.total, expect.n_answers
    counts, classes = expect.vote_shares()
    frequency = _shares(classes, total) if isinstance(prior, str) else np.asarray(prior, dtype=np.float64)
    estimated = isinstance(prior, str) and prior == "estimated"
    if start is not None:
        if estimated:  # a class that is new must not stay at zero for ever
            frequency = np.where(start.prior > 0, start.prior, frequency)
            frequency = frequency / frequency.sum()
        counts, classes, _ = expect(frequency, start.confusion)
    path: list[float] = []
    confusion, converged = np.zeros_like(counts), False
    while len(path) < max_iter and not converged:
        before, before_prior = confusion, frequency
        # M-step: matrices and class frequencies that make the expected counts most probable
        confusion = confusion_from_counts(counts, pseudo_counts, one_coin=one_coin)
        if estimated:
            frequency = _shares(classes, total)
        # E-step: counts to expect under them, and how probable they make the votes
        counts, classes, likelihood = expect(frequency, confusion)
        path.append(likelihood + (0.0 if pseudo_counts is None else float((pseudo_counts * np.log(confusion)).sum())))
        if len(path) > 1 and stop == "likelihood":
            converged = path[-1] - path[-2] < tol * n_answers
        elif len(path) > 1:
            moved = max(np.abs(confusion - before).max(), np.abs(frequency - before_prior).max())
            converged = bool(moved <= tol)
    return FusionState(confusion, counts, frequency, np.array(path), converged)


def _shares(classes: np.ndarray, total: float) -> np.ndarray:
    """How common each class is (classes,); where nobody labelled anything, all alike."""
    return classes / total if total > 0 else np.full(len(classes), 1 / len(classes))


def _merge_rows(votes: Votes, weights: np.ndarray) -> tuple[Votes, np.ndarray]:
    """Make rows with the same answers and gold label one, adding up their weights (replicates, rows)."""
    table = votes.answers.matrix(votes.n_rows, votes.n_raters)
    _, first, same = np.unique(
        np.column_stack([table, votes.gold]), axis=0, return_index=True, return_inverse=True
    )  # fmt: skip
    added = np.zeros((len(first), len(weights)))
    np.add.at(added, same, weights.T)
    answers = votes.answers.take(first, votes.n_rows)
    merged = Votes.from_answers(answers, len(first), votes.n_raters, votes.n_classes, votes.gold[first], votes.raters)
    return merged, np.ascontiguousarray(added.T)


def maximise_together(
    votes: Votes,
    weights: np.ndarray,
    prior: str | np.ndarray,
    pseudo_counts: np.ndarray | None,
    one_coin: bool,
    start: FusionState,
) -> tuple[np.ndarray, np.ndarray]:
    """Do as :func:`maximise` with the same votes under many weights at once: intervals need hundreds of estimates.

    Parameters
    ----------
    weights : (replicates, rows)
    start : state to go on from, that of the weights of the votes themselves

    Returns
    -------
    counts, confusion : (replicates, raters, classes, classes) each
    """
    answers, n_raters, n_classes, n_drawn = votes.answers, votes.n_raters, votes.n_classes, len(weights)
    given = np.zeros((votes.n_rows, n_raters * n_classes))
    given[answers.item, answers.rater.astype(np.int64) * n_classes + answers.label] = 1.0
    known = np.flatnonzero(votes.gold != MISSING_LABEL)
    certain = np.eye(n_classes)[votes.gold[known]]
    shares = votes.vote_counts()
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1)
    shares[known] = certain
    total = np.maximum(weights.sum(axis=1, keepdims=True), MIN_EXPECTED_COUNT)
    frequency = np.broadcast_to(start.prior, (n_drawn, n_classes))
    if isinstance(prior, str) and prior == "votes":
        frequency = weights @ shares / total
    confusion = np.broadcast_to(start.confusion, (n_drawn, n_raters, n_classes, n_classes))
    pseudo = None if pseudo_counts is None else np.tile(pseudo_counts, (n_drawn, 1, 1))
    for _ in range(_MAX_ITER_TOGETHER):
        seen = np.log(confusion).transpose(0, 1, 3, 2).reshape(n_drawn, -1, n_classes)
        posterior = given @ seen + log_of(frequency)[:, None]
        posterior -= posterior.max(axis=2, keepdims=True)
        np.exp(posterior, out=posterior)
        posterior /= posterior.sum(axis=2, keepdims=True)
        posterior[:, known] = certain
        posterior *= weights[:, :, None]
        counts = (given.T @ posterior).reshape(n_drawn, n_raters, n_classes, n_classes).transpose(0, 1, 3, 2)
        flat = confusion_from_counts(counts.reshape(-1, n_classes, n_classes), pseudo, one_coin=one_coin)
        before, confusion = confusion, flat.reshape(confusion.shape)
        if isinstance(prior, str) and prior == "estimated":
            frequency = posterior.sum(axis=1) / total
        if np.abs(confusion - before).max() < _TOL_TOGETHER:
            break
    return counts, confusion


class Expectation:
    """The E-step and the sums of the M-step in one pass over the votes, time and again with the same memory.

    No posterior is ever kept.

    Attributes
    ----------
    total, n_answers : what all rows, and all answers, weigh
    """

    def __init__(self, votes: Votes) -> None:
        self._votes, self._loops = votes, row_loops(len(votes.cell))
        self.total = float(votes.weight.sum())
        self.n_answers = max(float(votes.weight @ np.diff(votes.first_answer)), 1.0)
        n_cells = votes.n_raters * votes.n_classes**2
        self._lanes = [(number, *part) for number, part in enumerate(split_lanes(votes.first_answer, n_cells))]
        self._counts = own_rows(len(self._lanes), n_cells)
        self._classes = own_rows(len(self._lanes), votes.n_classes)
        self._unrolled = unrolled_classes(len(votes.cell), votes.n_classes)

    def __call__(self, prior: np.ndarray, confusion: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Give expected counts (raters, classes, classes), expected items per class (classes,), log-likelihood."""
        votes, log_prior, seen = self._votes, log_of(prior)[None], by_label(confusion)
        start, cell, weight, gold = votes.first_answer, votes.cell, votes.weight, votes.gold
        np.log(seen, out=seen)  # in place: with many raters the matrices are large

        def work(lane: int, first: int, last: int) -> float:
            counts, classes = self._counts[lane], self._classes[lane]
            counts[:], classes[:] = 0.0, 0.0
            return float(
                self._loops.expect_rows(
                    first, last, start, cell, weight, gold, log_prior, seen, counts, classes, self._unrolled
                )
            )

        likelihood = run_parts(work, self._lanes)
        return (*self._sums(), float(sum(likelihood)))

    def vote_shares(self) -> tuple[np.ndarray, np.ndarray]:
        """Counts and items per class with the shares of the votes as posterior."""
        votes, n_classes = self._votes, self._votes.n_classes
        start, cell, label, weight, gold = votes.first_answer, votes.cell, votes.answers.label, votes.weight, votes.gold

        def work(lane: int, first: int, last: int) -> None:
            counts, classes = self._counts[lane], self._classes[lane]
            counts[:], classes[:] = 0.0, 0.0
            self._loops.share_rows(first, last, start, cell, label, weight, gold, counts, classes, n_classes)

        run_parts(work, self._lanes)
        return self._sums()

    def _sums(self) -> tuple[np.ndarray, np.ndarray]:
        """Add the lanes up, always in the same order."""
        votes = self._votes
        counts = by_truth(self._counts.sum(axis=0), votes.n_raters, votes.n_classes)
        return counts, self._classes.sum(axis=0)[: votes.n_classes]


class ConfusionEstimator(FusionEstimator):
    """Base of the estimators that explain votes by one confusion matrix per rater and a class prior."""

    max_iter: int
    tol: float
    prior: str | np.ndarray
    confusion_prior: ConfusionPrior
    stop: Literal["likelihood", "parameters"]

    def check(self, annotations: Annotations) -> None:
        super().check(annotations)
        check_iterations(self.max_iter, self.tol)
        check_prior(self.prior, self.truth_classes(annotations.classes)[0])

    def estimate(self, votes: Votes, start: FusionState | None = None) -> FusionState:
        if self.keeps_one_number and too_many_matrices(votes.n_raters, votes.n_classes):
            return maximise_coins(votes, prior=self.prior, max_iter=self.max_iter, tol=self.tol)
        return maximise(
            votes, prior=self.prior, max_iter=self.max_iter, tol=self.tol, stop=self.stop,  # type: ignore[arg-type]
            pseudo_counts=self.pseudo_counts(votes.raters, votes.n_classes), one_coin=self.one_coin, start=start,
        )  # fmt: skip

    @property
    def adds_up(self) -> bool:
        return type(self).estimate is ConfusionEstimator.estimate  # who learns otherwise needs sums of its own

    def estimate_sums(self, sums: StreamedVotes) -> FusionState:
        if self.keeps_one_number and too_many_matrices(len(sums.raters), sums.n_classes):
            return maximise_coin_sums(sums.coins(), prior=self.prior, max_iter=self.max_iter, tol=self.tol)
        return maximise_sums(
            sums, prior=self.prior, max_iter=self.max_iter, tol=self.tol, stop=self.stop,  # type: ignore[arg-type]
            pseudo_counts=self.pseudo_counts(sums.raters, sums.n_classes), one_coin=self.one_coin,
        )  # fmt: skip

    def estimate_drawn(
        self, votes: Votes, weights: Iterable[np.ndarray], start: FusionState
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        if votes.n_rows * votes.n_raters * votes.n_classes > _MAX_TOGETHER:
            yield from super().estimate_drawn(votes, weights, start)
            return
        pseudo = self.pseudo_counts(votes.raters, votes.n_classes)
        drawn = np.stack([np.where(votes.answered, weight, 0.0) for weight in weights])
        votes, drawn = _merge_rows(votes, drawn)
        size = max(1, _MAX_TOGETHER // (votes.n_rows * votes.n_classes))
        for first in range(0, len(drawn), size):
            yield from zip(
                *maximise_together(votes, drawn[first : first + size], self.prior, pseudo, self.one_coin, start)
            )

    def posterior(self, votes: Votes, state: FusionState) -> np.ndarray:
        if isinstance(state, CoinState):
            return coin_posterior(votes, state)
        return votes_posterior(votes, log_of(state.prior), log_of(state.confusion))[0]

    @property
    def keeps_one_number(self) -> bool:
        return self.one_coin and self.confusion_prior is None and self.stop == "likelihood"

    def pseudo_counts(self, raters: Sequence[str], n_classes: int) -> np.ndarray | None:
        return _pseudo_counts(self.confusion_prior, raters, n_classes)

    def is_anchored(self, votes: Votes, state: FusionState) -> bool:
        return self.confusion_prior is not None or super().is_anchored(votes, state)


@register("dawid-skene")
class DawidSkene(ConfusionEstimator):
    """Dawid and Skene's model: the truth of each item, and how each rater confuses the classes.

    Parameters
    ----------
    max_iter : most iterations
    tol : stop when an iteration gains less log-likelihood than this per answer
    one_coin : give each rater one number, its chance to be right, instead of a whole matrix; for few answers, and for
        thousands of raters and classes, whose matrices would not fit into memory: ``confusion_`` is then a view
    prior : class frequencies: "estimated", "votes" (fixed at the classes' shares of the votes), or (classes,) given
    confusion_prior : labels that raters are taken to have given already, on items of known truth (a Dirichlet prior):
        (classes, classes) counts for every rater, (raters, classes, classes), or (classes, classes) by rater name
    scope : matrices for the whole data set ("dataset") or for each case with masks on its own ("case")

    Attributes
    ----------
    log_likelihood_ : (iterations,) never falling; with ``confusion_prior``, plus that prior's log density
    n_iter_ : iterations taken

    Notes
    -----
    Iterations start from the shares of the votes. See :class:`~annotruth.fusion.base.FusionEstimator` for the other
    attributes, and for gold labels.

    References
    ----------
    Dawid and Skene, Maximum likelihood estimation of observer error-rates using the EM algorithm, 1979.

    Examples
    --------
    >>> from annotruth import Annotations
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 2000)
    >>> answers = np.stack([np.where(rng.random(2000) < skill, truth, 1 - truth) for skill in (0.9, 0.8, 0.7, 0.3)], 1)
    >>> fused = DawidSkene().fit(Annotations.from_answers(answers))
    >>> fused.skill_.round(1)
    array([0.9, 0.8, 0.7, 0.3])
    """

    stop = "likelihood"

    def __init__(
        self,
        max_iter: int = 100,
        tol: float = 1e-6,
        one_coin: bool = False,
        prior: str | np.ndarray = "estimated",
        confusion_prior: ConfusionPrior = None,
        scope: str = "dataset",
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.one_coin = one_coin
        self.prior = prior
        self.confusion_prior = confusion_prior
        self.scope = scope


# -- what is known before any label is seen ---------------------------------------------------------------------


def check_prior(prior: str | np.ndarray, classes: Sequence[str]) -> None:
    """Refuse a class prior that is neither a known word nor a distribution over the classes."""
    if isinstance(prior, str):
        one_of(prior, ("estimated", "votes"), "prior")
        return
    values = np.asarray(prior, dtype=np.float64)
    if values.shape != (len(classes),):
        raise InputError(
            f"The prior needs one number for each of the {len(classes)} classes ({shorten(list(classes))})."
        )
    if not (values >= 0).all() or abs(values.sum() - 1) > 1e-6:
        raise InputError(f"The prior must hold probabilities that sum to 1, found {values.tolist()}.")


def _pseudo_counts(prior: ConfusionPrior, raters: Sequence[str], n_classes: int) -> np.ndarray | None:
    """Earlier labels as an array (raters, classes, classes), [true, observed].

    Parameters
    ----------
    prior : (classes, classes) for every rater, (raters, classes, classes), or (classes, classes) by rater name

    Examples
    --------
    >>> _pseudo_counts({"bob": np.eye(2)}, ["ann", "bob"], 2).sum(axis=(1, 2))
    array([0., 2.])
    """
    if prior is None:
        return None
    shape = (len(raters), n_classes, n_classes)
    counts = np.zeros(shape)
    if isinstance(prior, Mapping):
        strangers = sorted(set(map(str, prior)) - set(raters))
        if strangers:
            raise InputError(f"confusion_prior names raters without labels: {shorten(strangers)}.")
        given = [
            (index, np.asarray(prior[name], dtype=np.float64)) for index, name in enumerate(raters) if name in prior
        ]
    else:
        array = np.asarray(prior, dtype=np.float64)
        if array.ndim == 2:
            array = np.broadcast_to(array, (len(raters), *array.shape))
        if array.ndim != 3 or len(array) != len(raters):
            raise InputError(f"confusion_prior must have the shape (classes, classes) or {shape}, not {array.shape}.")
        given = list(enumerate(array))
    for index, matrix in given:
        if matrix.shape != shape[1:] or not np.isfinite(matrix).all() or (matrix < 0).any():
            raise InputError(
                f"confusion_prior of rater {raters[index]}: {n_classes}×{n_classes} counts of at least 0 are needed."
            )
        counts[index] = matrix
    return counts
