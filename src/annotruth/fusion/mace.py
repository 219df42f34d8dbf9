"""MACE: raters who now and then answer without looking, each in a manner of their own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion.base import FusionEstimator, check_iterations
from annotruth.fusion.dirichlet import divergence, mean_logs
from annotruth.fusion.gains import gain_posterior
from annotruth.fusion.majority import summed_up
from annotruth.fusion.registry import register
from annotruth.fusion.state import FusionState
from annotruth.fusion.votes import Votes


@dataclass(frozen=True)
class SpammerState(FusionState):
    """What :class:`MACE` learns.

    Attributes
    ----------
    looking : (raters, 2) answers without, and with, a look at the item, with the prior's
    habit : (raters, classes) answers of each class without a look, with the prior's
    """

    looking: np.ndarray = field(default_factory=lambda: np.empty((0, 2)))
    habit: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))

    def for_raters(self, n_raters: int) -> Self:
        more = ((0, n_raters - len(self.looking)), (0, 0))
        looking, habit = np.pad(self.looking, more, constant_values=0.5), np.pad(self.habit, more, constant_values=10.0)
        return replace(super().for_raters(n_raters), looking=looking, habit=habit)


@register("mace")
class MACE(FusionEstimator):
    """An answer is the truth, or, with a chance of the rater's own, a spammer's: drawn from that rater's habit.

    For crowds with spammers who always give the same class or pick at random. ``competence_`` tells who looks. Where
    raters err because classes look alike, ``DawidSkene`` is the model.

    Parameters
    ----------
    max_iter : most iterations
    tol : stop when an iteration gains less of the bound of the log evidence than this per answer
    spam_prior : counts, of answers without and with a look, that each rater is taken to have given before
    habit_prior : answers of each class that each rater is taken to have given without a look
    scope : raters for the whole data set ("dataset") or for each case with masks on its own ("case")

    Attributes
    ----------
    competence_ : (raters,) how probable it is that the rater looks
    log_likelihood_ : (iterations,) lower bound of the log evidence, never falling

    Notes
    -----
    Variational Bayes with Beta and Dirichlet priors, as the paper recommends. Every rater starts as looking at half of
    the items; there are no random restarts.

    References
    ----------
    Hovy and others, Learning whom to trust with MACE, 2013.

    Examples
    --------
    >>> from annotruth import Annotations
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 3, 300)
    >>> answers = np.stack([np.where(rng.random(300) < 0.9, truth, 1), truth, truth, np.full(300, 2)], axis=1)
    >>> fused = MACE().fit(Annotations.from_answers(answers))
    >>> bool(fused.competence_[3] < 0.05 < 0.8 < fused.competence_[0])
    True
    """

    def __init__(
        self,
        max_iter: int = 100,
        tol: float = 1e-6,
        spam_prior: tuple[float, float] = (0.5, 0.5),
        habit_prior: float = 10.0,
        scope: str = "dataset",
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.spam_prior = spam_prior
        self.habit_prior = habit_prior
        self.scope = scope

    def check(self, annotations: Annotations) -> None:
        super().check(annotations)
        check_iterations(self.max_iter, self.tol)
        counts = np.asarray(self.spam_prior, dtype=np.float64)
        if counts.shape != (2,) or not (counts > 0).all() or not self.habit_prior > 0:
            raise InputError(
                "spam_prior must be two positive counts, and habit_prior a positive one, found "
                f"{self.spam_prior} and {self.habit_prior}."
            )

    @property
    def competence_(self) -> np.ndarray:
        self._check_fitted()
        state = self.state_
        if not isinstance(state, SpammerState):  # summed up over cases
            chance = 1 / len(self.classes_)
            return np.clip((self.skill_ - chance) / max(1 - chance, chance), 0, 1)
        return state.looking[:, 1] / state.looking.sum(axis=1)

    def estimate(self, votes: Votes, start: FusionState | None = None) -> FusionState:
        shape = (votes.n_raters, votes.n_classes)
        spam_prior = np.broadcast_to(np.asarray(self.spam_prior, dtype=np.float64), (votes.n_raters, 2))
        habit_prior = np.full(shape, float(self.habit_prior))
        answers, weight = votes.answers, votes.weight[votes.answers.item]
        n_answers = max(float(weight.sum()), 1.0)
        if isinstance(start, SpammerState):
            looking, habit = start.looking, start.habit
        else:
            given = np.bincount(answers.rater, weight, minlength=votes.n_raters)
            looking = spam_prior + given[:, None] / 2
            habit = habit_prior + given[:, None] / (2 * votes.n_classes)
        path: list[float] = []
        converged = False
        while not converged:
            posterior, evidence, looked = _expect(votes, looking, habit)
            bound = float(votes.weight @ np.where(votes.answered, evidence, 0.0))
            path.append(bound - divergence(looking, spam_prior) - divergence(habit, habit_prior))
            converged = len(path) > 1 and path[-1] - path[-2] < self.tol * n_answers
            if len(path) == self.max_iter:
                break
            if not converged:
                cell = answers.rater.astype(np.int64) * votes.n_classes + answers.label
                spam = np.bincount(cell, weight * (1 - looked), minlength=shape[0] * shape[1]).reshape(shape)
                with_look = np.bincount(answers.rater, weight * looked, minlength=votes.n_raters)
                looking = spam_prior + np.stack([spam.sum(axis=1), with_look], axis=1)
                habit = habit_prior + spam
        found = summed_up(votes, posterior)
        prior = np.full(votes.n_classes, 1 / votes.n_classes)
        return SpammerState(
            found.confusion, found.counts, prior, np.array(path), converged, looking=looking, habit=habit
        )

    def posterior(self, votes: Votes, state: FusionState) -> np.ndarray:
        assert isinstance(state, SpammerState)
        return _expect(votes, state.looking, state.habit)[0]


def _expect(votes: Votes, looking: np.ndarray, habit: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Posterior (rows, classes), bound of the log evidence (rows,), how probably each answer came of a look."""
    answers = votes.answers
    spamming, honest = mean_logs(looking).T
    without = (spamming[:, None] + mean_logs(habit))[answers.rater, answers.label]
    either = np.logaddexp(without, honest[answers.rater])
    prior = np.full(votes.n_classes, 1 / votes.n_classes)
    posterior, total = gain_posterior(votes, prior, either - without)
    looked = posterior[answers.item, answers.label] * np.exp(honest[answers.rater] - either)
    return posterior, total + np.bincount(answers.item, without, minlength=votes.n_rows), looked
