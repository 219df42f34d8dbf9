"""Spatial STAPLE: confusion matrices that vary over the picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion._em.spatial_em import LocalProblem, local_confusion, local_truth
from annotruth.fusion.dawid_skene import ConfusionPrior
from annotruth.fusion.em import confusion_from_counts
from annotruth.fusion.mask_checks import check_window, pixel_counts
from annotruth.fusion.registry import register
from annotruth.fusion.staple import STAPLE
from annotruth.fusion.state import CaseState, FusionState, RefineCases
from annotruth.fusion.stores import Case
from annotruth.fusion.votes import Votes
from annotruth.validation import MISSING_LABEL


@dataclass(frozen=True)
class SpatialState(FusionState):
    """What was found in the end, with the state of the whole that the cases' local estimates start from."""

    whole: FusionState | None = None


@register("spatial-staple")
class SpatialSTAPLE(STAPLE):
    """STAPLE for raters whose errors depend on the place: each pixel's matrices come from a window around it.

    First the raters are estimated as a whole, as by :class:`~annotruth.STAPLE`. Then, case by case, local matrices,
    local class frequencies and the truth are estimated in turn. Local values are drawn towards the whole's, the more
    so the less the window holds.

    Parameters
    ----------
    window : side of the window in pixels, odd; one number, or one for each axis. Time does not depend on it
    shrinkage : what the whole's values count for, as a part of the window's pixels
    max_iter : most local iterations
    tol : stop when posteriors move by no more than this on average
    foreground, prior, confusion_prior, exclude_consensus, scope : as for :class:`~annotruth.STAPLE`

    Attributes
    ----------
    confusion_ : (raters, classes, classes) against the final truth, over all pixels
    log_likelihood_, n_iter_ : of the first stage
    local_n_iter_ : (items,) local iterations

    References
    ----------
    Asman and Landman, Formulating spatially varying performance in the statistical fusion framework, 2012.

    Examples
    --------
    >>> from annotruth import Annotations
    >>> rng = np.random.default_rng(0)
    >>> truth = (np.indices((64, 64)).sum(axis=0) // 8 % 2).astype(np.uint8)
    >>> masks = np.stack([truth] * 3)
    >>> for rater in range(3):  # each fails in its own third of the picture
    ...     part = masks[rater, rater * 21 : rater * 21 + 21]
    ...     part[:] = np.where(rng.random(part.shape) < 0.5, part, 1 - part)
    >>> annotations = Annotations.from_masks(masks[None])
    >>> fused = SpatialSTAPLE(window=9).fit(annotations)
    >>> bool((fused.predict()[0] == truth).mean() > 0.99)
    True
    """

    smoothing = 0.0

    def __init__(
        self,
        window: int | Sequence[int] = 15,
        shrinkage: float = 0.1,
        max_iter: int = 50,
        tol: float = 1e-4,
        foreground: str | int | None = None,
        prior: str | np.ndarray = "votes",
        confusion_prior: ConfusionPrior = None,
        exclude_consensus: bool = False,
        scope: str = "dataset",
    ) -> None:
        self.window = window
        self.shrinkage = shrinkage
        self.max_iter = max_iter
        self.tol = tol
        self.foreground = foreground
        self.prior = prior
        self.confusion_prior = confusion_prior
        self.exclude_consensus = exclude_consensus
        self.scope = scope

    @property
    def local_n_iter_(self) -> np.ndarray:
        self._check_fitted()
        return np.array([self._last[index].n_iter for index in range(len(self.items_))])

    def confusion_map(self, index: int) -> np.ndarray:
        """One case's local matrices, (raters, classes, classes, *spatial) float32, [true, observed].

        Raters who did not take part in the case's batch have the matrix of the whole everywhere.
        """
        self._check_fitted()
        case, whole = self._masks.case(index), whole_state(self.case_state(index))
        posterior = self.predict_proba_item(index).reshape(len(self.classes_), -1)
        maps = np.empty((*whole.confusion.shape, posterior.shape[1]), dtype=np.float32)
        maps[:] = whole.confusion[..., None]
        maps[case.position] = local_confusion(self._local_problem(case, whole), posterior)
        return maps.reshape(*whole.confusion.shape, *case.shape)

    def check(self, annotations: Annotations) -> None:
        super().check(annotations)
        if annotations.kind != "masks":
            raise InputError("SpatialSTAPLE needs masks; for a label table use DawidSkene.")
        check_window(self.window, annotations)
        if not self.shrinkage > 0:
            raise InputError(f"shrinkage must be above 0, found {self.shrinkage}.")

    def estimate(self, votes: Votes, start: FusionState | None = None) -> FusionState:
        """Estimate the whole as STAPLE does; max_iter and tol are for the local iterations."""
        whole = STAPLE(prior=self.prior, confusion_prior=self.confusion_prior, exclude_consensus=self.exclude_consensus)
        return whole.estimate(votes, start)

    @property
    def refines(self) -> bool:
        return True

    def refine_case(self, case: Case, state: FusionState) -> CaseState:
        """Estimate the truth and the local matrices of a case, and what each rater did."""
        whole = whole_state(state)
        problem = self._local_problem(case, whole)
        posterior = case.to_pixels(self.posterior(case.votes, whole).T.astype(np.float32))
        n_iter, settled = local_truth(problem, posterior, self.max_iter, self.tol)
        counts = np.zeros((case.votes.n_raters, len(posterior), len(posterior)))
        counts[case.position] = _local_counts(problem, posterior, self.exclude_consensus)
        return CaseState(posterior, counts, settled, n_iter)

    def refine(self, votes: Votes, state: FusionState, refine_cases: RefineCases) -> FusionState:
        """Refine every case once, and sum up."""
        counts, settled = np.zeros_like(state.counts), state.converged
        for case in refine_cases(state, final=True):
            counts += case.counts
            settled &= case.converged
        confusion = confusion_from_counts(counts, self.pseudo_counts(votes.raters, votes.n_classes))
        return SpatialState(confusion, counts, state.prior, state.log_likelihood, settled, whole=state)

    def _local_problem(self, case: Case, whole: FusionState) -> LocalProblem:
        fixed = (case.votes.gold != MISSING_LABEL) | self._agreed(case.votes)
        window = tuple(int(side) for side in np.broadcast_to(self.window, len(case.shape)))
        return LocalProblem(
            masks=case.masks,
            shape=case.shape,
            fixed=case.to_pixels(fixed[None].astype(np.uint8))[0],
            confusion=whole.confusion[case.position],
            prior=whole.prior,
            window=window,
            shrinkage=self.shrinkage * prod(window),
        )


def whole_state(state: FusionState) -> FusionState:
    """The state of the whole: this one, or the one that it was refined from."""
    return state.whole if isinstance(state, SpatialState) and state.whole is not None else state


def _local_counts(problem: LocalProblem, posterior: np.ndarray, without_fixed: bool) -> np.ndarray:
    """Expected counts (raters, classes, classes) of a case."""
    return pixel_counts(problem.masks, posterior * (problem.fixed == 0) if without_fixed else posterior)
