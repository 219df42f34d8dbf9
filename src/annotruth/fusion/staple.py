"""STAPLE: simultaneous truth and performance level estimation, for two classes or many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion.base import foreground_classes
from annotruth.fusion.dawid_skene import ConfusionEstimator, ConfusionPrior
from annotruth.fusion.em import confusion_from_counts, log_of, vote_counts, votes_posterior
from annotruth.fusion.registry import register
from annotruth.fusion.state import CaseState, FusionState, RefineCases
from annotruth.fusion.stores import Case
from annotruth.fusion.votes import Votes
from annotruth.validation import MISSING_LABEL

_MAX_SMOOTHING_ROUNDS = 20  # of smoothing the truth and estimating the raters anew


@register("staple")
class STAPLE(ConfusionEstimator):
    """The truth behind several raters' masks, and each rater's sensitivity, specificity or whole confusion matrix.

    Parameters
    ----------
    max_iter : most iterations
    tol : stop when no entry of ``confusion_`` or ``prior_`` moves by more than this
    foreground : name or number of the one class of interest; all others then count as background, and the truth has
        two classes. By default all classes are told apart
    prior : class frequencies: "votes" (fixed at the classes' shares of the votes), "estimated", or (classes,) given
    confusion_prior : labels that raters are taken to have given already, on pixels of known truth (a Dirichlet prior):
        (classes, classes) counts for every rater, (raters, classes, classes), or (classes, classes) by rater name
    exclude_consensus : learn only from pixels that raters disagree on; where two or more agree, take their word
    smoothing : strength of a Markov random field: how much log odds each neighbour (sharing a face) of a class adds
        to it. 0 = pixels are independent
    scope : matrices for the whole data set ("dataset") or for each case on its own ("case")

    Attributes
    ----------
    log_likelihood_ : (iterations,) never falling; with ``confusion_prior``, plus that prior's log density
    n_iter_ : iterations taken

    Notes
    -----
    Iterations start from the shares of the votes. With complete masks this is the computation of ITK's
    STAPLEImageFilter, to rounding. With ``smoothing``, the raters are first estimated without the random field, then
    again with it. See :class:`~annotruth.fusion.base.FusionEstimator` for the other attributes and for gold labels.

    References
    ----------
    Warfield, Zou and Wells, Simultaneous truth and performance level estimation (STAPLE), 2004.

    Examples
    --------
    >>> from annotruth import Annotations
    >>> rng = np.random.default_rng(0)
    >>> truth = np.zeros((64, 64), dtype=np.uint8)
    >>> truth[16:48, 16:48] = 1
    >>> masks = np.stack([np.where(rng.random(truth.shape) < skill, truth, 1 - truth) for skill in (0.95, 0.9, 0.7)])
    >>> fused = STAPLE().fit(Annotations.from_masks(masks[None]))
    >>> fused.skill_.round(1)
    array([0.9, 0.9, 0.7])
    >>> fused.predict().shape, fused.predict_proba().shape
    ((1, 64, 64), (1, 2, 64, 64))
    """

    stop = "parameters"

    def __init__(
        self,
        max_iter: int = 1000,
        tol: float = 1e-7,
        foreground: str | int | None = None,
        prior: str | np.ndarray = "votes",
        confusion_prior: ConfusionPrior = None,
        exclude_consensus: bool = False,
        smoothing: float = 0.0,
        scope: str = "dataset",
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.foreground = foreground
        self.prior = prior
        self.confusion_prior = confusion_prior
        self.exclude_consensus = exclude_consensus
        self.smoothing = smoothing
        self.scope = scope

    def check(self, annotations: Annotations) -> None:
        super().check(annotations)
        if self.smoothing < 0:
            raise InputError(f"smoothing must be at least 0, found {self.smoothing}.")
        if self.smoothing and annotations.kind != "masks":
            raise InputError("smoothing needs masks: the items of a label table have no neighbours.")

    def truth_classes(self, names: tuple[str, ...]) -> tuple[tuple[str, ...], int | None]:
        return foreground_classes(names, self.foreground)

    def estimate(self, votes: Votes, start: FusionState | None = None) -> FusionState:
        if self.exclude_consensus:
            disputed = votes.reweighted(np.where(self._agreed(votes), 0.0, votes.weight))
            votes = disputed if disputed.weight.any() else votes
        return super().estimate(votes, start)

    @property
    def adds_up(self) -> bool:
        return type(self).estimate is STAPLE.estimate and not (self.exclude_consensus or self.refines)

    def estimate_drawn(
        self, votes: Votes, weights: Iterable[np.ndarray], start: FusionState
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        agreed = self._agreed(votes)
        return super().estimate_drawn(votes, (np.where(agreed, 0.0, weight) for weight in weights), start)

    def posterior(self, votes: Votes, state: FusionState) -> np.ndarray:
        posterior = super().posterior(votes, state)
        agreed = self._agreed(votes)
        posterior[agreed] = votes.vote_counts()[agreed] > 0
        return posterior

    def _agreed(self, votes: Votes) -> np.ndarray:
        """Bool (rows,): where the raters' common word is taken."""
        if not self.exclude_consensus:
            return np.zeros(votes.n_rows, dtype=bool)
        return votes.unanimous() & (votes.gold == MISSING_LABEL)

    # -- the random field ---------------------------------------------------------------------------------------

    @property
    def refines(self) -> bool:
        return self.smoothing > 0

    def refine_case(self, case: Case, state: FusionState) -> CaseState:
        """Smooth the truth of a case."""
        votes = case.votes
        _, evidence = votes_posterior(votes, log_of(state.prior), log_of(state.confusion))
        row = case.to_pixels(np.arange(votes.n_rows, dtype=np.int32)[None])[0]
        pixels = case.to_pixels(self.posterior(votes, state).T.astype(np.float32))
        smoothed, gain = self.smooth(pixels, case.shape)
        by_row = np.stack([np.bincount(row, weights=share, minlength=votes.n_rows) for share in smoothed], axis=1)
        by_row[self._agreed(votes) | ~votes.answered] = 0.0
        counts = vote_counts(votes, by_row)
        bound = float(np.bincount(row, minlength=votes.n_rows) @ evidence) + gain
        return CaseState(smoothed, counts, bound=bound)

    def smooth(self, posterior: np.ndarray, shape: tuple[int, ...]) -> tuple[np.ndarray, float]:
        """Give posteriors (classes, pixels) with the random field, and what it adds to the bound."""
        from annotruth.fusion._em.mrf import mean_field  # compiled: not for those who do not smooth

        return mean_field(posterior, shape, self.smoothing)

    def refine(self, votes: Votes, state: FusionState, refine_cases: RefineCases) -> FusionState:
        """Estimate the raters again from the smoothed truth, until the bound of the log-likelihood stops rising."""
        pseudo, best = self.pseudo_counts(votes.raters, votes.n_classes), -np.inf
        for _ in range(_MAX_SMOOTHING_ROUNDS):
            counts = np.zeros_like(state.counts)
            bound = 0.0 if pseudo is None else float((pseudo * log_of(state.confusion)).sum())
            for case in refine_cases(state):
                counts += case.counts
                bound += case.bound
            if bound - best <= self.tol * max(1.0, abs(bound)):
                break
            best = bound
            state = replace(state, confusion=confusion_from_counts(counts, pseudo), counts=counts)
        return state
