"""STAPLE: simultaneous truth and performance level estimation, for two classes or many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError, shorten
from annotruth.fusion._em.mrf import mean_field
from annotruth.fusion.dawid_skene import ConfusionEstimator
from annotruth.fusion.em import confusion_from_counts, expected_counts, log_of, votes_posterior
from annotruth.fusion.maximise import Estimate
from annotruth.fusion.priors import ConfusionPrior
from annotruth.fusion.votes import Votes
from annotruth.validation import MISSING_LABEL

_MOST_ROUNDS = 20  # of smoothing the truth and estimating the raters anew


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

    _stop = "parameters"

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

    def _check(self, annotations: Annotations) -> None:
        super()._check(annotations)
        if self.smoothing < 0:
            raise InputError(f"smoothing must be at least 0, found {self.smoothing}.")
        if self.smoothing and annotations.kind != "masks":
            raise InputError("smoothing needs masks: the items of a label table have no neighbours.")

    def _classes(self, names: tuple[str, ...]) -> tuple[tuple[str, ...], int | None]:
        wanted = self.foreground
        if wanted is None:
            return names, None
        if not isinstance(wanted, str) and 0 <= wanted < len(names):
            return (f"not {names[wanted]}", names[wanted]), int(wanted)
        if wanted not in names:
            raise InputError(f"foreground={wanted!r} is not among the classes {shorten(names, 10)}.")
        return (f"not {wanted}", str(wanted)), names.index(str(wanted))

    def _estimate(self, votes: Votes, start: tuple[np.ndarray, np.ndarray] | None) -> Estimate:
        if self.exclude_consensus:
            disputed = votes.reweighted(np.where(self._agreed(votes), 0.0, votes.weight))
            votes = disputed if disputed.weight.any() else votes
        return super()._estimate(votes, start)

    def _posterior(self, votes: Votes, confusion: np.ndarray, prior: np.ndarray) -> np.ndarray:
        posterior = super()._posterior(votes, confusion, prior)
        agreed = self._agreed(votes)
        posterior[agreed] = votes.vote_counts()[agreed] > 0
        return posterior

    def _agreed(self, votes: Votes) -> np.ndarray:
        """Bool (rows,): where the raters' common word is taken."""
        if not self.exclude_consensus:
            return np.zeros(votes.n_rows, dtype=bool)
        return votes.unanimous() & (votes.gold == MISSING_LABEL)

    # -- the random field ---------------------------------------------------------------------------------------

    def _refine(self, items: Sequence[int], estimate: Estimate) -> Estimate:
        """Estimate the raters again from the smoothed truth, until the bound of the log-likelihood stops rising."""
        bound = -np.inf
        for _ in range(_MOST_ROUNDS if self.smoothing else 0):
            counts, new_bound = self._smoothed_counts(items, estimate)
            if new_bound - bound <= self.tol * max(1.0, abs(new_bound)):
                break
            bound = new_bound
            confusion = confusion_from_counts(counts, self._pseudo_counts())
            estimate = replace(estimate, confusion=confusion, counts=counts)
        return estimate

    def _smoothed_counts(self, items: Sequence[int], estimate: Estimate) -> tuple[np.ndarray, float]:
        """Expected counts under the smoothed truth of some cases, and the bound of their log-likelihood."""
        log_prior, log_confusion = log_of(estimate.prior), log_of(estimate.confusion)
        pseudo = self._pseudo_counts()
        counts, bound = np.zeros_like(estimate.counts), 0.0 if pseudo is None else float((pseudo * log_confusion).sum())
        for index in items:
            source, local = self._masks.find(index)
            votes = self._masks.votes_of(source.patterns_of(local), source, len(self.classes_))
            answers, n_rows = votes.answers, votes.n_rows
            _, evidence = votes_posterior(votes, log_prior, log_confusion)
            posterior = self._posterior(votes, estimate.confusion, estimate.prior)
            lookup = source.lookup(local)
            masks, gold = source.read(local)
            row = lookup.write(masks, np.arange(n_rows, dtype=np.int32)[None], gold=gold)[0]
            pixels = lookup.write(masks, posterior.T.astype(np.float32), gold=gold)
            smoothed, gain = mean_field(pixels, source.annotations.shape(local), self.smoothing)
            bound += float(np.bincount(row, minlength=n_rows) @ evidence) + gain
            by_row = np.stack([np.bincount(row, weights=share, minlength=n_rows) for share in smoothed], axis=1)
            by_row[self._agreed(votes) | ~votes.answered] = 0.0
            counts += expected_counts(answers, by_row, votes.n_raters)
        return counts, bound

    def _pixel_posterior(self, index: int) -> np.ndarray | None:
        if not self.smoothing:
            return None
        source, local = self._masks.find(index)
        posterior = np.empty((len(self.classes_), prod(source.annotations.shape(local))), dtype=np.float32)
        self._write_votes(index, posterior)
        return mean_field(posterior, source.annotations.shape(local), self.smoothing)[0]
