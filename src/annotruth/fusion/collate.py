"""COLLATE: STAPLE for pixels that differ in how hard they are."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from scipy.sparse import csr_array

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion.base import FusionEstimator, check_iterations, foreground_classes
from annotruth.fusion.dawid_skene import check_prior
from annotruth.fusion.em import MIN_EXPECTED_COUNT, confusion_from_counts, log_of
from annotruth.fusion.majority import MeanLabel
from annotruth.fusion.mask_checks import need_masks
from annotruth.fusion.registry import register
from annotruth.fusion.state import FusionState
from annotruth.fusion.votes import Votes
from annotruth.validation import MISSING_LABEL


@dataclass(frozen=True)
class LevelState(FusionState):
    """What :class:`COLLATE` learns.

    Attributes
    ----------
    hard : (raters, classes, classes) matrices where pixels are hardest
    share : (levels,) of the pixels, the hardest level first
    """

    hard: np.ndarray = field(default_factory=lambda: np.empty((0, 0, 0)))
    share: np.ndarray = field(default_factory=lambda: np.ones(1))

    def for_raters(self, n_raters: int) -> Self:
        hard = FusionState(self.hard, self.hard, self.prior).for_raters(n_raters).confusion
        return replace(super().for_raters(n_raters), hard=hard)


@register("collate")
class COLLATE(FusionEstimator):
    """The truth behind masks most of whose pixels are obvious to everybody, and raters' errors where they are not.

    A pixel has a consensus level, from the hardest, at which raters err as their matrices say, to the easiest, at
    which nobody errs. STAPLE, which has one level, takes the many obvious pixels for proof that all raters are good.

    Parameters
    ----------
    levels : how many; a label at level i of L is the truth for certain with chance i / (L - 1), otherwise it is drawn
        from the rater's matrix. One level is STAPLE with the same prior
    max_iter : most iterations
    tol : stop when an iteration gains less log-likelihood than this per label
    foreground : name or number of the one class of interest; all others then count as background
    prior : class frequencies: "estimated", "votes" (fixed at the classes' shares of the votes), or (classes,) given
    scope : matrices for the whole data set ("dataset") or for each case on its own ("case")

    Attributes
    ----------
    hard_confusion_ : (raters, classes, classes) where pixels are hardest; ``confusion_`` is over all levels. With
        ``scope="case"``, (items, raters, classes, classes)
    level_share_ : (levels,) of the pixels, the hardest level first. With ``scope="case"``, (items, levels)
    log_likelihood_, n_iter_ : (iterations,) never falling, and how many there were

    Notes
    -----
    Expectation-maximisation over truth, level, and whether each label was certain. What a pixel's level may be depends
    on its votes alone, so that distinct votes are enough, however many pixels there are. Three raters of two classes
    are too few to tell a hard pixel from a poor rater: ``hard_confusion_`` is then not to be relied on.

    References
    ----------
    Asman and Landman, Robust statistical label fusion through consensus level, labeler accuracy and truth estimation
    (COLLATE), 2011.

    Examples
    --------
    >>> from annotruth import Annotations
    >>> rng = np.random.default_rng(0)
    >>> truth = (np.indices((64, 64))[1] > 31).astype(np.uint8)
    >>> near = np.abs(np.indices((64, 64))[1] - 31.5) < 8  # raters err beside the border only
    >>> masks = np.stack([truth ^ (near & (rng.random(truth.shape) < error)) for error in (0.1, 0.2, 0.3, 0.4)])
    >>> fused = COLLATE().fit(Annotations.from_masks(masks[None]))
    >>> np.diagonal(fused.hard_confusion_, axis1=1, axis2=2).mean(axis=1).round(1)
    array([0.9, 0.8, 0.7, 0.6])
    >>> fused.difficulty_item(0).shape
    (64, 64)
    """

    def __init__(
        self,
        levels: int = 2,
        max_iter: int = 1000,
        tol: float = 1e-7,
        foreground: str | int | None = None,
        prior: str | np.ndarray = "estimated",
        scope: str = "dataset",
    ) -> None:
        self.levels = levels
        self.max_iter = max_iter
        self.tol = tol
        self.foreground = foreground
        self.prior = prior
        self.scope = scope

    def check(self, annotations: Annotations) -> None:
        super().check(annotations)
        need_masks(annotations, "COLLATE", "GLAD, in which items differ in difficulty")
        check_iterations(self.max_iter, self.tol)
        check_prior(self.prior, self.truth_classes(annotations.classes)[0])
        if self.levels < 1:
            raise InputError(f"levels must be at least 1, found {self.levels}.")

    def truth_classes(self, names: tuple[str, ...]) -> tuple[tuple[str, ...], int | None]:
        return foreground_classes(names, self.foreground)

    @property
    def hard_confusion_(self) -> np.ndarray:
        return self._learnt("hard")

    @property
    def level_share_(self) -> np.ndarray:
        return self._learnt("share")

    def _learnt(self, what: str) -> np.ndarray:
        self._check_fitted()
        if self.scope == "case":
            return np.stack([getattr(case.for_raters(len(self.raters_)), what) for case in self.case_states_])
        return np.asarray(getattr(self.state_, what))

    def difficulty_item(self, index: int) -> np.ndarray:
        """How hard one case's pixels are, (*spatial) float32, from 0 (obvious) to 1."""
        self._check_fitted()
        case, state = self._masks.case(index), self.case_state(index)
        hardness = self._joint(case.votes, state).sum(axis=2).T @ (1 - self._certain())
        return case.to_pixels(hardness[None].astype(np.float32)).reshape(case.shape)

    def _certain(self) -> np.ndarray:
        """How often labels are the truth for certain, (levels,)."""
        return np.arange(self.levels) / max(self.levels - 1, 1)

    def estimate(self, votes: Votes, start: FusionState | None = None) -> FusionState:
        weight = np.where(votes.answered, votes.weight, 0.0)
        n_labels = max(float(weight @ np.diff(votes.first_answer)), 1.0)
        first = MeanLabel().estimate(votes)
        prior = first.prior if isinstance(self.prior, str) else np.asarray(self.prior, dtype=np.float64)
        prior = prior if prior.any() else np.full(votes.n_classes, 1 / votes.n_classes)
        hard, share = first.confusion, np.full(self.levels, 1 / self.levels)
        if isinstance(start, LevelState) and len(start.share) == self.levels:
            hard, share = start.hard, start.share
        estimated = isinstance(self.prior, str) and self.prior == "estimated" and weight.any()
        given, known, chance = _given(votes), _known(votes), self._certain()[:, None, None, None]
        path: list[float] = []
        while True:
            joint, evidence = self._expect(given, known, prior, hard, share)
            path.append(float(weight @ evidence))
            joint *= weight[:, None]
            counts = _counts(given, joint, votes.n_raters)
            converged = len(path) > 1 and path[-1] - path[-2] < self.tol * n_labels
            if converged or len(path) == self.max_iter:
                break
            by_matrix = (1 - chance) * hard  # of the labels, those that were drawn from it
            drawn = counts * by_matrix / np.maximum(by_matrix + chance * np.eye(votes.n_classes), MIN_EXPECTED_COUNT)
            hard, share = confusion_from_counts(drawn.sum(axis=0)), joint.sum(axis=(1, 2)) / max(weight.sum(), 1.0)
            prior = joint.sum(axis=(0, 1)) / weight.sum() if estimated else prior
        every = counts.sum(axis=0)
        return LevelState(confusion_from_counts(every), every, prior, np.array(path), converged, hard=hard, share=share)

    def posterior(self, votes: Votes, state: FusionState) -> np.ndarray:
        return self._joint(votes, state).sum(axis=0)

    def _joint(self, votes: Votes, state: FusionState) -> np.ndarray:
        """Posterior (levels, rows, classes) of level and truth."""
        assert isinstance(state, LevelState)
        return self._expect(_given(votes), _known(votes), state.prior, state.hard, state.share)[0]

    def _expect(
        self, given: csr_array, known: np.ndarray, prior: np.ndarray, hard: np.ndarray, share: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Posterior (levels, rows, classes) of level and truth, and log evidence (rows,)."""
        matrix = [np.maximum((1 - e) * hard + e * np.eye(len(prior)), MIN_EXPECTED_COUNT) for e in self._certain()]
        seen = [np.log(each).transpose(0, 2, 1).reshape(-1, len(prior)) for each in matrix]
        score = np.stack([given @ each for each in seen]) + (log_of(prior) + known) + log_of(share)[:, None, None]
        highest = score.max(axis=(0, 2))
        joint = np.exp(score - highest[:, None])
        total = joint.sum(axis=(0, 2))
        return joint / total[:, None], highest + np.log(total)


def _given(votes: Votes) -> csr_array:
    """Which labels each row holds: (rows, raters · classes) of ones."""
    answers = votes.answers
    column = answers.rater.astype(np.int64) * votes.n_classes + answers.label
    shape = (votes.n_rows, votes.n_raters * votes.n_classes)
    return csr_array((np.ones(len(column)), column, votes.first_answer), shape=shape)


def _known(votes: Votes) -> np.ndarray:
    """Zeros (rows, classes), minus infinity for classes that a row of known truth does not have."""
    gold = votes.gold[:, None]
    return np.where((gold == MISSING_LABEL) | (gold == np.arange(votes.n_classes)), 0.0, -np.inf)


def _counts(given: csr_array, joint: np.ndarray, n_raters: int) -> np.ndarray:
    """Expected counts (levels, raters, classes, classes), [true, observed], of a posterior (levels, rows, classes)."""
    n_classes = joint.shape[2]
    by_label = np.stack([given.T @ each for each in joint])
    return by_label.reshape(len(joint), n_raters, n_classes, n_classes).transpose(0, 1, 3, 2)
