"""GLAD: raters differ in ability, and items in how easy they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion.base import FusionEstimator, check_iterations
from annotruth.fusion.gains import gain_posterior
from annotruth.fusion.majority import summed_up
from annotruth.fusion.registry import register
from annotruth.fusion.state import FusionState
from annotruth.fusion.votes import Votes

_MEAN = 1.0  # of the normal priors, of variance 1, of abilities and of the logarithms of easiness
_MAX_STEP, _MAX_HALVINGS = 1.0, 6


@dataclass(frozen=True)
class AbilityState(FusionState):
    """What :class:`GLAD` learns; ``items["log_easiness"]`` has a number for each row of the votes.

    Attributes
    ----------
    ability : (raters,) 0 = guesses, below 0 = says the opposite
    """

    ability: np.ndarray = field(default_factory=lambda: np.empty(0))

    def for_raters(self, n_raters: int) -> Self:
        grown = np.pad(self.ability, (0, n_raters - len(self.ability)), constant_values=_MEAN)
        return replace(super().for_raters(n_raters), ability=grown)


@register("glad")
class GLAD(FusionEstimator):
    """A rater is right with probability σ(ability · easiness): good raters err too, on items that are hard.

    For many answers per item of items that differ in difficulty. Errors go to the other classes alike; where raters
    take one class for a certain other one, ``DawidSkene`` is the model.

    Parameters
    ----------
    max_iter : most iterations
    tol : stop when an iteration gains less log posterior than this per answer
    scope : abilities for the whole data set ("dataset") or for each case with masks on its own ("case")

    Attributes
    ----------
    log_likelihood_ : (iterations,) with the log density of the priors of abilities and easiness; never falling
    state_ : ``state_.ability`` (raters,), and ``state_.items["log_easiness"]``, for a label table (items,)

    Notes
    -----
    Abilities and the logarithms of easiness have normal priors of mean 1 and variance 1, and all classes are as
    probable beforehand, as in the paper. In masks, pixels with the same votes are as easy as each other.

    References
    ----------
    Whitehill and others, Whose vote should count more: optimal integration of labels from labelers of unknown
    expertise, 2009.

    Examples
    --------
    >>> from annotruth import Annotations
    >>> answers = np.array([[0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 1, 1], [1, 1, 1, 0]])
    >>> fused = GLAD().fit(Annotations.from_answers(answers))
    >>> bool(fused.state_.items["log_easiness"][0] > fused.state_.items["log_easiness"][2])
    True
    """

    one_coin = True
    has_item_state = True

    def __init__(self, max_iter: int = 200, tol: float = 1e-6, scope: str = "dataset") -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.scope = scope

    def check(self, annotations: Annotations) -> None:
        super().check(annotations)
        check_iterations(self.max_iter, self.tol)

    def estimate(self, votes: Votes, start: FusionState | None = None) -> FusionState:
        if not (np.diff(votes.first_answer) > 1).any():
            raise InputError(
                "GLAD learns how hard items are from raters who disagree on them, and no item has two answers. Take "
                "dawid-skene with known truth of some items, or majority."
            )
        ability = start.ability.copy() if isinstance(start, AbilityState) else np.full(votes.n_raters, _MEAN)
        easiness = np.full(votes.n_rows, _MEAN)
        n_answers = max(float(votes.weight @ np.diff(votes.first_answer)), 1.0)
        path: list[float] = []
        converged = False
        while not converged:
            posterior, evidence = _expect(votes, ability, easiness)
            penalty = ((ability - _MEAN) ** 2).sum() + votes.weight @ (easiness - _MEAN) ** 2
            path.append(float(votes.weight @ np.where(votes.answered, evidence, 0.0) - penalty / 2))
            converged = len(path) > 1 and path[-1] - path[-2] < self.tol * n_answers
            if len(path) == self.max_iter:
                break
            if not converged:
                ability, easiness = _maximise(votes, posterior, ability, easiness)
        found = summed_up(votes, posterior, one_coin=True)
        prior = np.full(votes.n_classes, 1 / votes.n_classes)
        return AbilityState(
            found.confusion, found.counts, prior, np.array(path), converged, {"log_easiness": easiness}, ability
        )

    def posterior(self, votes: Votes, state: FusionState) -> np.ndarray:
        assert isinstance(state, AbilityState)
        return _expect(votes, state.ability, state.items["log_easiness"])[0]


def _expect(votes: Votes, ability: np.ndarray, easiness: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """E-step: posterior (rows, classes) and log evidence (rows,)."""
    answers, n_others = votes.answers, max(votes.n_classes - 1, 1)
    strength = ability[answers.rater] * np.exp(easiness)[answers.item]
    # An answer is right with probability σ(strength), and one certain wrong one with σ(-strength) / others: the log of
    # their ratio is strength + log(others), and that of the wrong one counts whatever is true.
    prior = np.full(votes.n_classes, 1 / votes.n_classes)
    posterior, total = gain_posterior(votes, prior, strength + np.log(n_others))
    wrong = -np.logaddexp(0.0, strength) - np.log(n_others)
    return posterior, total + np.bincount(answers.item, wrong, minlength=votes.n_rows)


def _maximise(
    votes: Votes, posterior: np.ndarray, ability: np.ndarray, easiness: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """M-step: a Newton step of the abilities, then one of the easiness of the items; none of them makes it worse."""
    item, rater = votes.answers.item, votes.answers.rater
    right, weight = posterior[item, votes.answers.label], votes.weight[item]

    def climb(now: np.ndarray, index: np.ndarray, scale: Callable[[np.ndarray], np.ndarray], by_log: bool,
              count: np.ndarray) -> np.ndarray:  # fmt: skip
        """Move every number, ``count`` of whose answers are at ``index``; ``scale`` gives the answers' strengths."""

        def value(numbers: np.ndarray) -> np.ndarray:
            strength = scale(numbers)
            gained = count * (right * strength - np.logaddexp(0.0, strength))
            return np.bincount(index, gained, minlength=len(now)) - (numbers - _MEAN) ** 2 / 2

        strength = scale(now)
        slope = strength if by_log else scale(np.ones_like(now))  # of the strength, along the number
        chance = 0.5 * (1 + np.tanh(strength / 2))
        gradient = np.bincount(index, count * (right - chance) * slope, minlength=len(now)) - (now - _MEAN)
        curvature = np.bincount(index, count * chance * (1 - chance) * slope**2, minlength=len(now)) + 1
        step, before = np.clip(gradient / curvature, -_MAX_STEP, _MAX_STEP), value(now)
        for _ in range(_MAX_HALVINGS):
            worse = value(now + step) < before
            if not worse.any():
                return now + step
            step[worse] /= 2
        return now + np.where(worse, 0.0, step)

    ease = np.exp(easiness)[item]
    ability = climb(ability, rater, lambda numbers: numbers[rater] * ease, False, weight)
    skill = ability[rater]
    return ability, climb(easiness, item, lambda numbers: skill * np.exp(numbers)[item], True, np.ones(len(item)))
