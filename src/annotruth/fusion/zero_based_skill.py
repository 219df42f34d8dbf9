"""Zero-based skill: raters begin as guessers, and weigh what their agreement with the weighted vote comes to."""

from __future__ import annotations

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.fusion.base import check_iterations
from annotruth.fusion.registry import register
from annotruth.fusion.votes import Votes
from annotruth.fusion.weighted import WeightedVote, agreement

_FIRST_STEP, _STEPS_BETWEEN, _REDUCTION = 1.0, 20, 0.5
_ABOVE_GUESSING = 1e-5


@register("zero-based-skill")
class ZeroBasedSkill(WeightedVote):
    """Votes weighted by skills that follow, step by step, the agreement with the weighted vote itself.

    Parameters
    ----------
    max_iter : steps taken; the step halves every twenty of them
    scope : weights for the whole data set ("dataset") or for each case with masks on its own ("case")

    References
    ----------
    Crowd-kit's ``ZeroBasedSkill``, whose steps these are.

    Examples
    --------
    >>> from annotruth import Annotations
    >>> fused = ZeroBasedSkill().fit(Annotations.from_answers(np.array([[0, 0, 1], [1, 1, 1], [0, 0, 1], [1, 0, 1]])))
    >>> fused.state_.weight.round(2)
    array([1.  , 0.75, 0.5 ])
    """

    def __init__(self, max_iter: int = 100, scope: str = "dataset") -> None:
        self.max_iter = max_iter
        self.scope = scope

    def check(self, annotations: Annotations) -> None:
        super().check(annotations)
        check_iterations(self.max_iter)

    def weigh(self, votes: Votes) -> tuple[np.ndarray, bool]:
        answered = votes.vote_counts().sum(axis=0) > 0
        skill = np.full(votes.n_raters, 1 / max(int(answered.sum()), 1) + _ABOVE_GUESSING)
        step, rater = _FIRST_STEP, votes.answers.rater
        for number in range(1, self.max_iter + 1):
            if number % _STEPS_BETWEEN == 0:
                step *= _REDUCTION
            skill = skill + step * (agreement(votes, skill) - skill)
        return np.where(np.bincount(rater, minlength=votes.n_raters) > 0, skill, 0.0), True
