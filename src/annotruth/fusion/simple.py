"""SIMPLE: drop the raters who overlap least with what the others drew, and weigh those who stay."""

from __future__ import annotations

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion.base import check_iterations
from annotruth.fusion.em import best_classes
from annotruth.fusion.mask_checks import need_masks
from annotruth.fusion.registry import register
from annotruth.fusion.votes import Votes
from annotruth.fusion.weighted import WeightedVote
from annotruth.validation import MISSING_LABEL

MIN_KEPT = 3
"""Raters are dropped only while at least so many stay: two can outvote each other no longer."""
_SETTLED = 1e-6  # of weights


@register("simple")
class SIMPLE(WeightedVote):
    """Vote, measure every rater's overlap with the result, drop the worst, vote again weighted by overlaps, and so on.

    For raters (or atlases) some of whom failed altogether: wrong place, blank, another protocol. It learns no
    confusion: where raters err each in a manner of their own, ``STAPLE`` is the model.

    Parameters
    ----------
    alpha : a rater is dropped whose overlap is below the mean by more than so many standard deviations. Of n raters
        one can be at most (n - 1) / √n below: with 5 raters, 1.79
    max_iter : most rounds
    scope : raters are dropped for the whole data set ("dataset") or for each case on its own ("case", the paper's)

    Attributes
    ----------
    weights_ : (raters,) overlap of each rater with the result, 0 for those dropped. With ``scope="case"``,
        (items, raters)

    Notes
    -----
    The overlap is the Dice coefficient over the pixels that the rater labelled, averaged over the classes but the first
    (the background). At least three raters stay.

    References
    ----------
    Langerak and others, Label fusion in atlas-based segmentation using a selective and iterative method for
    performance level estimation (SIMPLE), 2010.

    Examples
    --------
    >>> from annotruth import Annotations
    >>> truth = np.zeros((32, 32), dtype=np.uint8)
    >>> truth[8:24, 8:24] = 1
    >>> masks = np.stack([np.roll(truth, shift, axis=1) for shift in (0, 1, -1, 0, 12)])
    >>> SIMPLE().fit(Annotations.from_masks(masks[None])).weights_.round(2)
    array([1.  , 0.94, 0.94, 1.  , 0.  ])
    """

    def __init__(self, alpha: float = 1.5, max_iter: int = 50, scope: str = "dataset") -> None:
        self.alpha = alpha
        self.max_iter = max_iter
        self.scope = scope

    def check(self, annotations: Annotations) -> None:
        super().check(annotations)
        need_masks(annotations, "SIMPLE", "Wawa, which weighs raters by agreement")
        check_iterations(self.max_iter)
        if not self.alpha > 0:
            raise InputError(f"alpha must be above 0, found {self.alpha}.")

    @property
    def weights_(self) -> np.ndarray:
        self._check_fitted()
        if self.scope == "case":
            return np.stack([case.for_raters(len(self.raters_)).weight for case in self.case_states_])  # type: ignore[attr-defined]
        return np.asarray(self.state_.weight)  # type: ignore[attr-defined]

    def weigh(self, votes: Votes) -> tuple[np.ndarray, bool]:
        kept = votes.labelled_counts() > 0
        weight = kept.astype(np.float64)
        for _ in range(self.max_iter):
            scores = votes.vote_counts(weight[votes.answers.rater])
            fused = np.where(votes.gold == MISSING_LABEL, best_classes(scores), votes.gold)
            overlap = mean_dice(votes, fused)
            low = overlap < overlap[kept].mean() - self.alpha * overlap[kept].std() - _SETTLED if kept.any() else kept
            n_droppable = max(int(kept.sum()) - MIN_KEPT, 0)
            worst = np.argsort(np.where(kept & low, overlap, np.inf), kind="stable")[:n_droppable]
            dropped = np.zeros_like(kept)
            dropped[worst] = (kept & low)[worst]
            kept = kept & ~dropped
            before, weight = weight, np.where(kept, overlap, 0.0)
            if not weight.any():  # nobody drew anything that others drew: all count alike
                weight = kept.astype(np.float64)
            if not dropped.any() and np.abs(weight - before).max(initial=0) <= _SETTLED:
                return weight, True
        return weight, False


def mean_dice(votes: Votes, fused: np.ndarray) -> np.ndarray:
    """Dice of each rater with the fused classes (rows,), over the rows they labelled, averaged over foreground classes.

    Classes that neither has are left out; where that is all of them, the overlap is 1. (raters,)
    """
    answers, n_classes = votes.answers, votes.n_classes
    weight, found = votes.weight[answers.item], fused[answers.item]

    def sums(chosen: np.ndarray, weight: np.ndarray) -> np.ndarray:
        cell = answers.rater.astype(np.int64) * n_classes + chosen
        return np.bincount(cell, weight, minlength=votes.n_raters * n_classes).reshape(-1, n_classes)[:, 1:]

    both = sums(answers.label, weight * (found == answers.label))
    either = sums(answers.label, weight) + sums(found, weight)
    present = either > 0
    dice = np.where(present, 2 * both / np.where(present, either, 1.0), 0.0).sum(axis=1)
    n_present = present.sum(axis=1)
    return np.where(n_present > 0, dice / np.maximum(n_present, 1), 1.0)
