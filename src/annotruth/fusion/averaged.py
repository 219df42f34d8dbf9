"""Several models at once: the mean of what they say of the truth, each with a weight of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion.base import FusionEstimator
from annotruth.fusion.em import confusion_from_counts, vote_counts
from annotruth.fusion.majority import summed_up
from annotruth.fusion.registry import make_estimator, register
from annotruth.fusion.state import FusionState
from annotruth.fusion.votes import Votes

Member = tuple[str, Mapping[str, Any], float]
_USUAL: tuple[Member, ...] = (("majority", {}, 1.0), ("dawid-skene", {}, 1.0), ("ibcc", {}, 1.0))


@dataclass(frozen=True)
class AveragedState(FusionState):
    """What the models of :class:`AveragedModels` learn; what they keep of items is in ``items``, by their number.

    Attributes
    ----------
    members : the models' states, without their items
    """

    members: tuple[FusionState, ...] = ()

    def for_raters(self, n_raters: int) -> Self:
        grown = tuple(member.for_raters(n_raters) for member in self.members)
        return replace(super().for_raters(n_raters), members=grown)

    def member(self, number: int) -> FusionState:
        """The state of one model, with its items."""
        own = {name.removeprefix(f"{number} "): each for name, each in self.items.items() if _of(name) == number}
        return replace(self.members[number], items=own)


@register("averaged")
class AveragedModels(FusionEstimator):
    """The mean of several models' posteriors, each with a weight: where they differ, the more trusted ones prevail.

    For label tables of which nobody knows which model suits them: ``annotruth.fusion.auto.choose`` finds weights by how
    well each foretells held-out raters. Models that make different errors put each other right.

    Parameters
    ----------
    members : for each model its method, its options and its weight; weights need not sum to 1
    scope : raters for the whole data set ("dataset") or for each case with masks on its own ("case")

    Attributes
    ----------
    confusion_ : of the raters' labels beside the averaged posterior
    weights_ : (members,), summing to 1

    Notes
    -----
    Intervals of skills draw items anew, but keep their truth as it was estimated from all: learning all models anew
    hundreds of times would take too long. With few raters an item they are too narrow, as a vote's are.

    References
    ----------
    Wolpert, Stacked generalization, 1992. Yao and others, Using stacking to average Bayesian predictive distributions,
    2018.

    Examples
    --------
    >>> from annotruth import Annotations
    >>> answers = Annotations.from_answers(np.array([[0, 0, 1], [1, 1, 1], [0, 0, 1], [1, -1, 1]]))
    >>> fused = AveragedModels(members=[("majority", {}, 1), ("dawid-skene", {}, 3)]).fit(answers)
    >>> fused.weights_, fused.predict()
    (array([0.25, 0.75]), array([0, 1, 0, 1]))
    """

    def __init__(self, members: Sequence[Member] = _USUAL, scope: str = "dataset") -> None:
        self.members = members
        self.scope = scope

    def check(self, annotations: Annotations) -> None:
        super().check(annotations)
        weights = [weight for _, _, weight in self._members()]
        if not weights or not all(np.isfinite(weight) and weight > 0 for weight in weights):
            raise InputError(f"members must have positive weights, found {weights}.")
        models = self._models()
        for model in models:
            if model.refines:
                raise InputError(f"{model} looks at where pixels lie, and cannot be averaged: fuse with it alone.")
            model.check(annotations)
        self._checked = models

    @property
    def weights_(self) -> np.ndarray:
        weights = np.array([weight for _, _, weight in self._members()], dtype=np.float64)
        return weights / weights.sum()

    @property
    def has_item_state(self) -> bool:  # type: ignore[override]
        return any(model.has_item_state for model in self._models())

    def estimate(self, votes: Votes, start: FusionState | None = None) -> FusionState:
        before = start.members if isinstance(start, AveragedState) else (None,) * len(self.members)
        states = [model.estimate(votes, each) for model, each in zip(self._checked, before, strict=True)]
        found = summed_up(votes, self._mean(votes, states))
        prior = np.tensordot(self.weights_, np.stack([state.prior for state in states]), axes=1)
        items = {f"{number} {name}": each for number, state in enumerate(states) for name, each in state.items.items()}
        members = tuple(replace(state, items={}) for state in states)
        settled = all(state.converged for state in states)
        return AveragedState(
            found.confusion, found.counts, prior, converged=settled, items=items, members=members
        )  # fmt: skip

    def posterior(self, votes: Votes, state: FusionState) -> np.ndarray:
        assert isinstance(state, AveragedState)
        return self._mean(votes, [state.member(number) for number in range(len(state.members))])

    def estimate_drawn(
        self, votes: Votes, weights: Iterable[np.ndarray], start: FusionState
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        if self.has_item_state:  # which was taken from the start
            start = self.estimate(votes)
        posterior = self.posterior(votes, start)
        for weight in weights:
            counts = vote_counts(votes, posterior, np.where(votes.answered, weight, 0.0))
            yield counts, confusion_from_counts(counts)

    def _mean(self, votes: Votes, states: Sequence[FusionState]) -> np.ndarray:
        mean = np.zeros((votes.n_rows, votes.n_classes))
        for weight, model, state in zip(self.weights_, self._models(), states, strict=True):
            mean += weight * model.posterior(votes, state)
        return mean

    def _models(self) -> list[FusionEstimator]:
        return [make_estimator(method, options=options) for method, options, _ in self._members()]

    def _members(self) -> list[Member]:
        try:
            return [(str(method), dict(options), float(weight)) for method, options, weight in self.members]
        except (TypeError, ValueError):
            raise InputError(
                f"members must be a method, its options and a weight each, found {self.members!r}."
            ) from None


def _of(name: str) -> int:
    """The number of the model whose items these are."""
    return int(name.split(" ", 1)[0])
