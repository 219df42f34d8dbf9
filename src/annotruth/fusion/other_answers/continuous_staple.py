"""STAPLE for numbers: the true value of each item, and each rater's bias and noise.

With y the mark that rater r gave item i, t the true value, b the rater's bias and s its noise:

    y = t_i + b_r + e,   e ~ N(0, s_r²),   t_i ~ N(mean, spread²).
"""

from __future__ import annotations

import warnings
from statistics import NormalDist

import numpy as np

from annotruth.data.marks import Marks
from annotruth.errors import IdentifiabilityWarning, InputError, shorten
from annotruth.fusion.base import check_iterations
from annotruth.fusion.identifiability import co_labelling_groups
from annotruth.fusion.other_answers import register
from annotruth.fusion.other_answers.base import AnswerModel

_MIN_VARIANCE = 1e-12  # as a share of that of all marks


@register("continuous-staple")
class ContinuousSTAPLE(AnswerModel[Marks]):
    """The true value of each item from raters' numbers, and each rater's bias and noise.

    Raters need not mark every item, and may mark one several times. Where nobody knows the truth only differences
    between raters can be seen: biases are so shifted that their mean is 0, raters with less noise counting more.

    Parameters
    ----------
    rater_prior : marks without bias and of usual noise that each rater is taken to have given before, so that one mark
        makes nobody perfect; 0 for maximum likelihood
    max_iter : most iterations
    tol : stop when an iteration gains less log-likelihood than this per mark

    Attributes
    ----------
    bias_, noise_ : (raters,) how much higher than the truth a rater's marks are on average, and their standard
        deviation around that
    mean_, spread_ : mean and standard deviation of the items' true values
    reliability_ : (raters,) share of the variance of a rater's marks that comes from the items
    log_likelihood_ : (iterations,) with the log density of the prior; never falling

    References
    ----------
    Warfield and others, Validation of image segmentation by estimating rater bias and variance, 2008 (there, every
    value is as probable beforehand).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth, bias, noise = rng.normal(50, 10, 300), np.array([0.0, 3.0, -3.0]), np.array([1.0, 2.0, 4.0])
    >>> item, rater = np.divmod(np.arange(900), 3)
    >>> value = truth[item] + bias[rater] + rng.normal(0, noise[rater])
    >>> fused = ContinuousSTAPLE().fit(Marks([str(n) for n in range(300)], ["ann", "bob", "cy"], item, rater, value))
    >>> fused.noise_.round(), (fused.bias_ - fused.bias_[0]).round() + 0.0
    (array([1., 2., 4.]), array([ 0.,  3., -3.]))
    """

    takes = Marks

    def __init__(self, rater_prior: float = 1.0, max_iter: int = 1000, tol: float = 1e-8) -> None:
        self.rater_prior = rater_prior
        self.max_iter = max_iter
        self.tol = tol

    def learn(self, answers: Marks) -> None:
        check_iterations(self.max_iter, self.tol)
        if not self.rater_prior >= 0:
            raise InputError(f"rater_prior must be a count of at least 0, found {self.rater_prior}.")
        _refuse_single_marks(answers)
        item, rater, n_items, n_raters = answers.item, answers.rater, len(answers.items), len(answers.raters)
        self.counts_ = np.bincount(rater, minlength=n_raters)
        n_marks = np.bincount(item, minlength=n_items)
        value, count = answers.value, np.maximum(n_marks, 1)
        with np.errstate(over="ignore"):
            scale = float(np.var(value)) or max(float(value[0]) ** 2, 1.0)  # of marks that are all the same
        if not np.isfinite(scale):
            raise InputError(f"Marks up to {np.abs(value).max():g} are too large to square. Give them in another unit.")
        average = np.bincount(item, value, n_items) / count
        apart = value - average[item]
        usual = max(float((apart**2).sum() / np.maximum(count - 1, 0).sum()), _MIN_VARIANCE * scale)
        bias, variance = np.zeros(n_raters), np.full(n_raters, usual)
        mean, spread = float(average.mean()), max(float(average.var()), _MIN_VARIANCE * scale)
        prior, total = self.rater_prior, self.counts_ + self.rater_prior
        total = np.where(total > 0, total, 1.0)
        path: list[float] = []
        converged = False
        while not converged:
            # E-step: mean and variance of each item's value
            precision = 1 / spread + np.bincount(item, 1 / variance[rater], n_items)
            away = value - mean - bias[rater]
            pull = np.bincount(item, away / variance[rater], n_items)
            truth, doubt = mean + pull / precision, 1 / precision
            path.append(
                -0.5 * float(
                    (np.log(2 * np.pi * variance[rater]) + away**2 / variance[rater]).sum()
                    + np.log(spread * precision).sum() - (pull**2 / precision).sum()
                    + prior * (np.log(variance) + (usual + bias**2) / variance).sum()
                )
            )  # fmt: skip
            converged = len(path) > 1 and path[-1] - path[-2] < self.tol * len(answers)
            if len(path) == self.max_iter:
                break
            if not converged:
                # M-step: what makes these most probable
                rest = value - truth[item]
                bias = np.bincount(rater, rest, n_raters) / total
                squares = np.bincount(rater, (rest - bias[rater]) ** 2 + doubt[item], n_raters)
                variance = np.maximum((squares + prior * (usual + bias**2)) / total, _MIN_VARIANCE * scale)
                shift = float(bias @ (1 / variance) / (1 / variance).sum())  # the marks do not tell it from the mean
                mean = float(truth.mean())
                spread = max(float(((truth - mean) ** 2 + doubt).mean()), _MIN_VARIANCE * scale)
                bias, mean = bias - shift, mean + shift
        self.bias_, self.noise_, self.mean_, self.spread_ = bias, np.sqrt(variance), mean, float(np.sqrt(spread))
        self.log_likelihood_, self.n_iter_, self.converged_ = np.array(path), len(path), converged
        self._truth, self._doubt, self.marked_ = truth, np.sqrt(doubt), n_marks

    def predict(self) -> np.ndarray:
        """Expected true values (items,), in the items' order."""
        self._check_fitted()
        return self._truth

    def predict_interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Bounds (low, high) of the true values, (items,) each, given the raters' biases and noises as estimated."""
        self._check_fitted()
        reach = NormalDist().inv_cdf((1 + level) / 2) * self._doubt
        return self._truth - reach, self._truth + reach

    @property
    def reliability_(self) -> np.ndarray:
        self._check_fitted()
        return self.spread_**2 / (self.spread_**2 + self.noise_**2)

    def truth_columns(self) -> dict[str, np.ndarray]:
        low, high = self.predict_interval()
        return {"truth": self._truth, "low": low, "high": high, "marks": self.marked_}

    def rater_columns(self) -> dict[str, np.ndarray]:
        return {
            "reliability": self.reliability_, "bias": self.bias_, "noise": self.noise_, "marks": self.counts_,
        }  # fmt: skip


def _refuse_single_marks(answers: Marks) -> None:
    """Refuse marks that cannot be compared, and warn where some raters cannot be compared with others."""
    group = co_labelling_groups(answers.item, answers.rater, len(answers.raters))
    together = np.bincount(group[group >= 0])
    if together.max(initial=0) <= 1:
        raise InputError(
            "No item was marked by two raters: nothing tells a rater's bias and noise. Let raters mark some items in "
            "common."
        )
    if (answers.item == answers.item[0]).all():
        raise InputError(
            f"All marks are of one item, {answers.items[answers.item[0]]}: nothing tells how much items differ, and so "
            "how much of a mark is noise. Add items, or take the mean of the marks."
        )
    if len(together) > 1:
        alone = [name for name, own in zip(answers.raters, group) if own not in (-1, together.argmax())]
        warnings.warn(
            f"{len(alone)} raters ({shorten(alone)}) marked no item in common with the others, also not through third "
            "ones: their biases are told only if they were given items like everybody's.",
            IdentifiabilityWarning,
            stacklevel=4,
        )
