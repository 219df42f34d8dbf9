"""The fusion to choose labels by, where none is named: one that stays sober with few labels per item and rater."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from annotruth.choosing.queue.posteriors import SHRINKAGE, shrink
from annotruth.data.annotations import Annotations
from annotruth.fusion.base import FusionEstimator
from annotruth.fusion.dawid_skene import DawidSkene, maximise
from annotruth.fusion.registry import make_estimator
from annotruth.fusion.state import FusionState
from annotruth.fusion.votes import Votes
from annotruth.validation import MISSING_LABEL

PRIOR_LABELS, PRIOR_SKILL = 4.0, 0.7
"""Labels that every rater is taken to have given already, and the share of them that was right."""
OF_TWO = 1.0
"""Labels of each of two classes that the prior of a rater's matrix weighs; of more classes it weighs ``SHRINKAGE``."""


def usual_estimator(annotations: Annotations) -> FusionEstimator:
    """The estimator for annotations: STAPLE for masks, :class:`SparseDawidSkene` for a label table.

    Examples
    --------
    >>> usual_estimator(Annotations.from_answers(np.array([[0, 1]])))
    SparseDawidSkene()
    """
    return make_estimator("staple") if annotations.kind == "masks" else SparseDawidSkene()


@dataclass(frozen=True)
class SparseState(FusionState):
    """What :class:`SparseDawidSkene` has learnt.

    Attributes
    ----------
    prior_counts : (raters, classes, classes) labels that each rater is taken to have given, by their chance to be right
    """

    prior_counts: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0)))


class SparseDawidSkene(DawidSkene):
    """Dawid and Skene's model for tables with few labels per item and per rater.

    Raters are learnt only from items that several of them labelled, or of which the truth is known: a single label says
    nothing about who gave it, but in an estimate of maximum likelihood it bears itself out. First each rater has one
    number, the chance to be right, with a weak belief that raters mostly are. This gives a prior for the rater's
    matrix, which departs from it as far as the labels tell; sooner where there are two classes, as many raters favour
    one of two, which a strong prior would hide for long.

    Examples
    --------
    >>> answers = np.array([[0, 1, -1], [0, 0, -1], [1, 1, -1], [-1, -1, 1]])
    >>> fused = SparseDawidSkene().fit(Annotations.from_answers(answers))
    >>> fused.skill_.round(2)
    array([0.74, 0.79, 0.73])
    """

    def estimate(self, votes: Votes, start: FusionState | None = None) -> FusionState:
        several = (np.diff(votes.first_answer) > 1) | (votes.gold != MISSING_LABEL)
        teaching = votes.reweighted(np.where(several, votes.weight, 0.0))
        given = np.bincount(votes.answers.label, minlength=votes.n_classes) + 1.0
        n_classes, right = votes.n_classes, np.eye(votes.n_classes, dtype=bool)
        wrong = PRIOR_LABELS * (1 - PRIOR_SKILL) / max(n_classes * (n_classes - 1), 1)
        belief = np.where(right, PRIOR_LABELS * PRIOR_SKILL / n_classes, wrong)
        coins = maximise(
            teaching, prior=given / given.sum(), max_iter=self.max_iter, tol=self.tol, stop="likelihood",
            pseudo_counts=np.broadcast_to(belief, (votes.n_raters, n_classes, n_classes)), one_coin=True,
        )  # fmt: skip
        prior_counts = shrink(coins.counts, belief, own=OF_TWO if n_classes == 2 else SHRINKAGE)
        refined = maximise(
            teaching, prior=given / given.sum(), max_iter=self.max_iter, tol=self.tol, stop="likelihood",
            pseudo_counts=prior_counts, start=coins,
        )  # fmt: skip
        return SparseState(**vars(refined), prior_counts=prior_counts)

    def pseudo_counts(self, raters: Sequence[str], n_classes: int) -> np.ndarray | None:
        state = getattr(self, "state_", None)
        return state.prior_counts if isinstance(state, SparseState) else None

    def is_anchored(self, votes: Votes, state: FusionState) -> bool:
        return True  # by the belief that raters are mostly right
