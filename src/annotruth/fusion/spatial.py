"""Spatial STAPLE: confusion matrices that vary over the picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion._em.spatial_em import Field, local_confusion, local_truth
from annotruth.fusion.em import confusion_from_counts
from annotruth.fusion.maximise import Estimate
from annotruth.fusion.priors import ConfusionPrior
from annotruth.fusion.staple import STAPLE
from annotruth.fusion.votes import Votes
from annotruth.validation import MISSING_LABEL

_KEPT_BYTES = 2**28  # posteriors kept from fit to predict; beyond this they are computed again


@dataclass(frozen=True)
class LocalEstimate:
    """What is kept of a case: the estimate of the whole it started from, its iterations, its posterior if small."""

    whole: Estimate
    n_iter: int
    posterior: np.ndarray | None


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
        return np.array([self._local[index].n_iter for index in range(len(self.items_))])

    def confusion_map(self, index: int) -> np.ndarray:
        """One case's local matrices, (raters, classes, classes, *spatial) float32, [true, observed].

        Raters who did not take part in the case's batch have the matrix of the whole everywhere.
        """
        self._check_fitted()
        whole = self._local[index % len(self.items_)].whole
        field, _, position = self._field(index, whole)
        maps = np.empty((*whole.confusion.shape, prod(field.shape)), dtype=np.float32)
        maps[:] = whole.confusion[..., None]
        maps[position] = local_confusion(field, self._pixel_posterior(index))
        return maps.reshape(*whole.confusion.shape, *field.shape)

    def _check(self, annotations: Annotations) -> None:
        super()._check(annotations)
        if annotations.kind != "masks":
            raise InputError("SpatialSTAPLE needs masks; for a label table use DawidSkene.")
        sides = np.atleast_1d(self.window)
        if sides.ndim != 1 or not np.issubdtype(sides.dtype, np.integer) or (sides < 1).any() or (sides % 2 == 0).any():
            raise InputError(f"window must be odd whole numbers of at least 1, found {self.window!r}.")
        dimensions = {len(annotations.shape(i)) for i in range(len(annotations))}
        if len(sides) > 1 and dimensions != {len(sides)}:
            raise InputError(f"window has {len(sides)} sides but the masks have {sorted(dimensions)} dimensions.")
        if not self.shrinkage > 0:
            raise InputError(f"shrinkage must be above 0, found {self.shrinkage}.")

    def _estimate(self, votes: Votes, start: tuple[np.ndarray, np.ndarray] | None) -> Estimate:
        """Estimate the whole as STAPLE does; max_iter and tol are for the local iterations."""
        whole = STAPLE(prior=self.prior, confusion_prior=self.confusion_prior, exclude_consensus=self.exclude_consensus)
        whole.raters_, whole.classes_ = self.raters_, self.classes_
        return whole._estimate(votes, start)

    def _refine(self, items: Sequence[int], estimate: Estimate) -> Estimate:
        """Estimate truth and local matrices of every case, and sum up what each rater did."""
        if 0 in items:
            self._local: dict[int, LocalEstimate] = {}
        counts, settled, kept = np.zeros_like(estimate.counts), estimate.converged, 0
        for index in items:
            field, posterior, position = self._field(index, estimate)
            n_iter, done = local_truth(field, posterior, self.max_iter, self.tol)
            kept += posterior.nbytes
            self._local[index] = LocalEstimate(estimate, n_iter, posterior if kept <= _KEPT_BYTES else None)
            counts[position] += _tally(field, posterior, self.exclude_consensus)
            settled &= done
        confusion = confusion_from_counts(counts, self._pseudo_counts())
        return replace(estimate, confusion=confusion, counts=counts, converged=settled)

    def _pixel_posterior(self, index: int) -> np.ndarray:
        local = self._local[index % len(self.items_)]
        if local.posterior is not None:
            return local.posterior
        field, posterior, _ = self._field(index, local.whole)
        local_truth(field, posterior, self.max_iter, self.tol)
        return posterior

    def _field(self, index: int, whole: Estimate) -> tuple[Field, np.ndarray, np.ndarray]:
        """What a case's local estimate works on, its first posterior (classes, pixels), and its raters' positions."""
        source, local = self._masks.find(index)
        votes = self._masks.votes_of(source.patterns_of(local), source, len(self.classes_))
        masks, gold = source.read(local)
        lookup, shape = source.lookup(local), source.annotations.shape(local)
        start = self._posterior(votes, whole.confusion, whole.prior).T.astype(np.float32)
        fixed = (votes.gold != MISSING_LABEL) | self._agreed(votes)
        sides = np.broadcast_to(self.window, len(shape))
        window = tuple(int(side) for side in sides)
        field = Field(
            masks=self._masks.relabelled(masks),
            shape=shape,
            fixed=lookup.write(masks, fixed[None].astype(np.uint8), gold=gold)[0],
            confusion=whole.confusion[source.position],
            prior=whole.prior,
            window=window,
            shrinkage=self.shrinkage * prod(window),
        )
        return field, lookup.write(masks, start, gold=gold), source.position


def _tally(field: Field, posterior: np.ndarray, without_fixed: bool) -> np.ndarray:
    """Expected counts (raters, classes, classes) of a case."""
    n_classes = len(posterior)
    counted = posterior * (field.fixed == 0) if without_fixed else posterior
    return np.stack(
        [
            [np.bincount(mask, weights=share, minlength=n_classes)[:n_classes] for share in counted]
            for mask in field.masks
        ]
    )
