"""What an estimator has learnt: of a data set, or of one case."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

from annotruth.fusion.em import confusion_from_counts

if TYPE_CHECKING:
    from annotruth.fusion.one_coin import CoinSums
    from annotruth.fusion.votes import Votes


@dataclass(frozen=True)
class FusionState:
    """What an estimator has learnt from votes, and all it needs to tell their truth. It travels between processes.

    An estimator with more to remember derives from this, or puts what belongs to single items into ``items``.

    Attributes
    ----------
    confusion, counts : (raters, classes, classes) matrices, and the expected counts under them
    prior : (classes,)
    log_likelihood : (iterations,) never falling; with pseudo-counts, plus the log density of that prior
    converged : whether the stopping rule was met
    items : by name, something for each row of the votes, (rows, …): for each item of a label table, for each distinct
        tuple of votes of masks
    """

    confusion: np.ndarray
    counts: np.ndarray
    prior: np.ndarray
    log_likelihood: np.ndarray = field(default_factory=lambda: np.empty(0))
    converged: bool = True
    items: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def n_iter(self) -> int:
        return len(self.log_likelihood)

    def take(self, rows: np.ndarray) -> Self:
        """Keep what belongs to some rows of the votes, in the order given."""
        return replace(self, items={name: values[rows] for name, values in self.items.items()})

    def for_raters(self, n_raters: int) -> Self:
        """Add matrices that say nothing for raters who came later.

        Examples
        --------
        >>> FusionState(np.eye(2)[None], np.eye(2)[None], np.array([0.5, 0.5])).for_raters(2).confusion[1]
        array([[0.5, 0.5],
               [0.5, 0.5]])
        """
        n_classes = self.confusion.shape[-1]
        grown = np.full((n_raters, n_classes, n_classes), 1 / n_classes)
        grown[: len(self.confusion)] = self.confusion
        return replace(self, confusion=grown)


@dataclass(frozen=True)
class CaseState:
    """What looking at the pixels of one case gave.

    Attributes
    ----------
    posterior : (classes, pixels) float32; (classes, 0) where it was written elsewhere or is too large to keep
    counts : (raters, classes, classes) expected counts under it
    converged, n_iter : whether the case's iterations settled, and how many there were
    bound : what the case adds to the bound of the log-likelihood
    """

    posterior: np.ndarray
    counts: np.ndarray
    converged: bool = True
    n_iter: int = 0
    bound: float = 0.0

    def without_posterior(self) -> CaseState:
        return replace(self, posterior=self.posterior[:, :0].copy())


class RefineCases(Protocol):
    """Refines every case, given the state of them all: here, or in other processes. States come in the cases' order."""

    def __call__(self, state: FusionState, final: bool = False) -> Iterable[CaseState]:
        """With ``final``, the posteriors are the last ones: they may be kept, or written to disk."""


class VoteSums(Protocol):
    """Sums over all votes under given parameters, wherever the votes are: all that Dawid-Skene's iterations need.

    Attributes
    ----------
    total, n_answers : what all rows, and all answers, weigh
    """

    total: float
    n_answers: float

    def vote_shares(self) -> tuple[np.ndarray, np.ndarray]:
        """Counts (raters, classes, classes), and items per class (classes,), with vote shares as posterior."""

    def __call__(self, prior: np.ndarray, confusion: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Expected counts (raters, classes, classes), expected items per class (classes,), log-likelihood."""


class StreamedVotes(VoteSums, Protocol):
    """Votes of a label table that is not in memory: blocks of items, and sums over all of them.

    Attributes
    ----------
    raters : names
    n_classes : of the truth
    rater_groups : (raters,) groups of raters linked by common items, as
        :func:`~annotruth.fusion.identifiability.co_labelling_groups` numbers them
    """

    raters: tuple[str, ...]
    n_classes: int
    rater_groups: np.ndarray

    def add_up(self, work: Callable[[Votes], tuple[np.ndarray, ...]]) -> list[np.ndarray]:
        """Call a picklable function on the votes of each block, a row per item; give the sums of what it gives."""

    def coins(self) -> CoinSums:
        """Sums of the model with one number per rater."""


def pool_states(cases: Sequence[FusionState], sizes: np.ndarray, n_raters: int) -> FusionState:
    """Sum up the states of single cases: counts add up, priors are averaged by the cases' sizes (cases,).

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
    return FusionState(confusion_from_counts(counts), counts, prior, path, all(case.converged for case in cases))
