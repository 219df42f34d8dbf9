"""Bradley and Terry's model: how good items are, by which of two raters found better; and of raters who err.

The chance that item a is found better than b is σ(s_a - s_b). Prior: each item has won, and lost, some comparisons with
an average one, so that scores stay finite where an item always won.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from annotruth.data.comparisons import Comparisons
from annotruth.errors import IdentifiabilityWarning, InputError, shorten
from annotruth.fusion.base import check_iterations
from annotruth.fusion.other_answers import register
from annotruth.fusion.other_answers.base import AnswerModel

_MIN_GAIN = 1e-14  # of the log-likelihood, as a share of it: below, nothing but rounding changes
_LOOK = 1.0  # log odds to start from, that a rater looks


@register("bradley-terry")
class BradleyTerry(AnswerModel[Comparisons]):
    """Scores of items from which of two was found better, all raters being equally good.

    Parameters
    ----------
    prior : comparisons with an average item that each item is taken to have won, and lost, before; 0 for maximum
        likelihood, which needs every item to win, and to lose, somewhere in every part of the table
    max_iter : most iterations
    tol : stop when the gradient of the log posterior is nowhere steeper than this

    Attributes
    ----------
    scores_ : (items,) of mean 0: the chance that item a is found better than b is σ(scores_[a] - scores_[b])
    agreement_ : (raters,) how often a rater found the item better that has the higher score
    log_likelihood_ : of the answers, with the log density of the prior

    References
    ----------
    Bradley and Terry, Rank analysis of incomplete block designs: the method of paired comparisons, 1952.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"item_left": ["a", "b", "a", "c"], "item_right": ["b", "c", "c", "a"],
    ...                       "rater": ["ann", "ann", "bob", "bob"], "better": ["a", "b", "a", "a"]})
    >>> fused = BradleyTerry().fit(Comparisons.from_table(frame))
    >>> fused.truth_[["item", "rank"]].values.tolist()
    [['a', 1], ['b', 2], ['c', 3]]
    """

    takes = Comparisons

    def __init__(self, prior: float = 0.1, max_iter: int = 1000, tol: float = 1e-6) -> None:
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol

    def learn(self, answers: Comparisons) -> None:
        check_iterations(self.max_iter, self.tol)
        if not self.prior >= 0:
            raise InputError(f"prior must be a count of at least 0, found {self.prior}.")
        _compare_parts(answers, self.prior)
        self._find(answers)
        self.scores_ -= self.scores_.mean()
        gap = self.scores_[answers.left] - self.scores_[answers.right]
        agrees = np.where(gap == 0, 0.5, (gap > 0) == answers.left_better)
        n_raters = len(answers.raters)
        self.counts_ = np.bincount(answers.rater, minlength=n_raters)
        self.compared_ = np.bincount(np.append(answers.left, answers.right), minlength=len(answers.items))
        self.agreement_ = np.bincount(answers.rater, agrees, minlength=n_raters) / np.maximum(self.counts_, 1)

    def _find(self, answers: Comparisons) -> None:
        """Set ``scores_`` and what else the model has."""
        side = np.where(answers.left_better, 1.0, -1.0)

        def value(scores: np.ndarray) -> tuple[float, np.ndarray]:
            log, slope = _log_chance(side * (scores[answers.left] - scores[answers.right]))
            prior, pull = self._score_prior(scores)
            return float(log.sum() + prior), _on_items(answers, side * slope) + pull

        self.scores_ = self._climb(value, np.zeros(len(answers.items)))

    def _climb(self, value: Callable[[np.ndarray], tuple[float, np.ndarray]], start: np.ndarray) -> np.ndarray:
        """The place where a function that gives its value and gradient is highest."""
        from scipy.optimize import minimize

        def fall(at: np.ndarray) -> tuple[float, np.ndarray]:
            height, slope = value(at)
            return -height, -slope

        options = {"maxiter": self.max_iter, "maxfun": 2 * self.max_iter, "ftol": _MIN_GAIN, "gtol": self.tol}
        found = minimize(fall, start, jac=True, method="L-BFGS-B", options=options)
        self.log_likelihood_, self.n_iter_ = -float(found.fun), int(found.nit)
        self.converged_ = bool(found.success)
        return np.asarray(found.x)

    def _score_prior(self, scores: np.ndarray) -> tuple[float, np.ndarray]:
        """Log density of scores (items,), and its gradient: comparisons won and lost with an item of score 0."""
        won, lost = _log_chance(scores), _log_chance(-scores)
        return self.prior * float((won[0] + lost[0]).sum()), self.prior * (won[1] - lost[1])

    def truth_columns(self) -> dict[str, np.ndarray]:
        place = np.empty(len(self.items_), dtype=np.int64)
        place[np.argsort(-self.scores_, kind="stable")] = np.arange(1, len(self.items_) + 1)
        return {"rank": place, "score": self.scores_, "comparisons": self.compared_}

    def rater_columns(self) -> dict[str, np.ndarray]:
        return {"agreement": self.agreement_, "answers": self.counts_}


@register("noisy-bradley-terry")
class NoisyBradleyTerry(BradleyTerry):
    """Bradley and Terry's scores of items, with raters who do not always look, and then lean to the left or the right.

    Parameters
    ----------
    prior : comparisons with an average item that each item is taken to have won, and lost, before
    rater_prior : answers with a look, and without one, and of those to the left, and to the right, that each rater is
        taken to have given before
    max_iter : most iterations
    tol : stop when the gradient of the log posterior is nowhere steeper than this

    Attributes
    ----------
    scores_ : (items,) of mean 0: the chance that whoever looks finds a better than b is σ(scores_[a] - scores_[b])
    skill_ : (raters,) how probable it is that the rater looks
    left_bias_ : (raters,) how probable it is that the rater, without a look, takes the item on the left
    agreement_ : (raters,) how often a rater found the item better that has the higher score

    References
    ----------
    Chen and others, Pairwise ranking aggregation in a crowdsourced setting, 2013 (raters who err); the leaning to a
    side is crowd-kit's.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> left, right, rater = rng.integers(0, 20, 3000), rng.integers(0, 20, 3000), rng.integers(0, 5, 3000)
    >>> left_better = np.where(rater == 4, True, left > right)  # the last rater always takes the left one
    >>> pairs = left != right
    >>> names = [str(number) for number in range(20)]
    >>> fused = NoisyBradleyTerry().fit(
    ...     Comparisons(names, names[:5], left[pairs], right[pairs], rater[pairs], left_better[pairs]))
    >>> bool(fused.skill_[4] < 0.1 < 0.8 < fused.skill_[:4].min()), bool(fused.left_bias_[4] > 0.9)
    (True, True)
    """

    def __init__(self, prior: float = 0.1, rater_prior: float = 0.5, max_iter: int = 1000, tol: float = 1e-6) -> None:
        self.prior = prior
        self.rater_prior = rater_prior
        self.max_iter = max_iter
        self.tol = tol

    def _find(self, answers: Comparisons) -> None:
        if not self.rater_prior >= 0:
            raise InputError(f"rater_prior must be a count of at least 0, found {self.rater_prior}.")
        super()._find(answers)  # the scores if all raters were alike are a good place to start from
        n_items, n_raters = len(answers.items), len(answers.raters)
        rater, side = answers.rater, np.where(answers.left_better, 1.0, -1.0)

        def value(at: np.ndarray) -> tuple[float, np.ndarray]:
            scores, look, lean = np.split(at, [n_items, n_items + n_raters])
            looked, looked_slope = _log_chance(look)
            not_looked, not_looked_slope = _log_chance(-look)
            by_look, look_slope = _log_chance(side * (scores[answers.left] - scores[answers.right]))
            by_lean, lean_slope = _log_chance(side * lean[rater])
            with_look, without = looked[rater] + by_look, not_looked[rater] + by_lean
            total = np.logaddexp(with_look, without)
            share = np.exp(with_look - total)  # how probably the answer came of a look
            prior, pull = self._score_prior(scores)
            left, left_slope = _log_chance(lean)
            right, right_slope = _log_chance(-lean)
            own = self.rater_prior * float((looked + not_looked + left + right).sum())
            slope = share * looked_slope[rater] - (1 - share) * not_looked_slope[rater]
            return float(total.sum()) + prior + own, np.concatenate([
                _on_items(answers, side * share * look_slope) + pull,
                np.bincount(rater, slope, n_raters) + self.rater_prior * (looked_slope - not_looked_slope),
                np.bincount(rater, side * (1 - share) * lean_slope, n_raters)
                + self.rater_prior * (left_slope - right_slope),
            ])  # fmt: skip

        start = np.concatenate([self.scores_, np.full(n_raters, _LOOK), np.zeros(n_raters)])
        self.scores_, look, lean = np.split(self._climb(value, start), [n_items, n_items + n_raters])
        self.skill_, self.left_bias_ = np.exp(_log_chance(look)[0]), np.exp(_log_chance(lean)[0])

    def rater_columns(self) -> dict[str, np.ndarray]:
        return {"skill": self.skill_, "left_bias": self.left_bias_, **super().rater_columns()}


def _log_chance(gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """log σ of gaps, and its derivative, σ(-gap)."""
    log = -np.logaddexp(0.0, -gap)
    return log, np.exp(log - gap)


def _on_items(answers: Comparisons, slope: np.ndarray) -> np.ndarray:
    """The gradient (items,) along the scores, from that (answers,) along the gaps of left and right."""
    n_items = len(answers.items)
    return np.bincount(answers.left, slope, n_items) - np.bincount(answers.right, slope, n_items)


def _compare_parts(answers: Comparisons, prior: float) -> None:
    """Warn of items that no comparisons link; without a prior, refuse those that nothing links both ways.

    The scores of items that did not win, and lose, against others, directly or not, have no highest likelihood.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n_items = len(answers.items)
    better = np.where(answers.left_better, answers.left, answers.right)
    worse = np.where(answers.left_better, answers.right, answers.left)
    wins = coo_array((np.ones(len(better)), (better, worse)), shape=(n_items, n_items))
    count, part = connected_components(wins, connection="weak" if prior > 0 else "strong")
    if count == 1:
        return
    least = int(np.bincount(part).argmin())
    if prior == 0:
        raise InputError(
            "With prior=0, every item must have won, and lost, some comparison, directly or through others, with "
            f"every other; {answers.items[int(np.flatnonzero(part == least)[0])]} has not. Give prior=0.1."
        )
    alone = [answers.items[item] for item in np.flatnonzero(part == least)]
    warnings.warn(
        f"The items fall into {count} groups between which nobody compared any; the smallest: {shorten(alone)}. Scores "
        "and ranks say nothing across groups: have some of their items compared.",
        IdentifiabilityWarning,
        stacklevel=4,
    )
