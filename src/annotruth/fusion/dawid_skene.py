"""Dawid-Skene: one confusion matrix per rater, by expectation-maximisation."""

from __future__ import annotations

from typing import Literal

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion.base import FusionEstimator
from annotruth.fusion.em import log_of, votes_posterior
from annotruth.fusion.maximise import Estimate, maximise
from annotruth.fusion.priors import ConfusionPrior, check_prior, pseudo_counts
from annotruth.fusion.votes import Votes


class ConfusionEstimator(FusionEstimator):
    """Base of the estimators that explain votes by one confusion matrix per rater and a class prior."""

    max_iter: int
    tol: float
    prior: str | np.ndarray
    confusion_prior: ConfusionPrior
    _stop: Literal["likelihood", "parameters"]

    def _check(self, annotations: Annotations) -> None:
        super()._check(annotations)
        if self.max_iter < 1 or self.tol < 0:
            raise InputError(f"max_iter must be at least 1 and tol at least 0, found {self.max_iter} and {self.tol}.")
        check_prior(self.prior, self._classes(annotations.classes)[0])

    def _estimate(self, votes: Votes, start: tuple[np.ndarray, np.ndarray] | None) -> Estimate:
        return maximise(
            votes, prior=self.prior, max_iter=self.max_iter, tol=self.tol, stop=self._stop,  # type: ignore[arg-type]
            pseudo_counts=self._pseudo_counts(), one_coin=self._one_coin, start=start,
        )  # fmt: skip

    def _posterior(self, votes: Votes, confusion: np.ndarray, prior: np.ndarray) -> np.ndarray:
        return votes_posterior(votes, log_of(prior), log_of(confusion))[0]

    def _pseudo_counts(self) -> np.ndarray | None:
        return pseudo_counts(self.confusion_prior, self.raters_, len(self.classes_))

    def _anchored(self, votes: Votes) -> bool:
        return self.confusion_prior is not None or super()._anchored(votes)


class DawidSkene(ConfusionEstimator):
    """Dawid and Skene's model: the truth of each item, and how each rater confuses the classes.

    Parameters
    ----------
    max_iter : most iterations
    tol : stop when an iteration gains less log-likelihood than this per answer
    one_coin : give each rater one number, its chance to be right, instead of a whole matrix; for few answers
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

    _stop = "likelihood"

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

    @property
    def _one_coin(self) -> bool:  # type: ignore[override]
        return self.one_coin
