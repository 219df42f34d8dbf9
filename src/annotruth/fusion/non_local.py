"""Non-local STAPLE: what a rater would have said of a pixel, by what they said of pixels around that look like it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion.dawid_skene import ConfusionPrior
from annotruth.fusion.em import confusion_from_counts, expected_counts, log_of, votes_posterior
from annotruth.fusion.mask_checks import need_images, need_masks, target_and_atlases
from annotruth.fusion.registry import register
from annotruth.fusion.spatial import SpatialState
from annotruth.fusion.staple import STAPLE
from annotruth.fusion.state import CaseState, FusionState, RefineCases
from annotruth.fusion.stores import Case
from annotruth.fusion.votes import Votes
from annotruth.validation import MISSING_LABEL, MISSING_PIXEL

_CASE_SAMPLES, _SAMPLES = 2**14, 2**17  # disputed pixels that matrices are learnt from: of a case, and of all
_PART = 2**16  # pixels whose soft labels are held at a time


@dataclass(frozen=True)
class SoftVotes:
    """Soft labels of some pixels.

    Attributes
    ----------
    labels : (raters, classes, pixels) float32, 0 for all classes where a rater says nothing
    gold : (pixels,) uint8 true label where known, 255 elsewhere
    weight : how many pixels each stands for
    """

    labels: np.ndarray
    gold: np.ndarray
    weight: float

    def posterior(self, prior: np.ndarray, confusion: np.ndarray) -> np.ndarray:
        """posterior[k, v] ∝ prior[k] · Π_raters Σ_labels confusion[rater, k, label] · labels[rater, label, v]."""
        score = np.repeat(log_of(prior)[:, None], len(self.gold), axis=1)
        for matrix, labels in zip(confusion, self.labels):
            spoken = labels.sum(axis=0) > 0
            score += np.log(np.where(spoken, matrix @ labels.astype(np.float64), 1.0))
        score = np.exp(score - score.max(axis=0))
        score /= score.sum(axis=0)
        known = np.flatnonzero(self.gold != MISSING_PIXEL)
        score[:, known] = np.eye(len(prior))[:, self.gold[known]]
        return score

    def counts(self, posterior: np.ndarray) -> np.ndarray:
        """Expected counts (raters, classes, classes): Σ_pixels posterior[k, v] · labels[rater, label, v]."""
        return self.weight * np.stack([posterior @ labels.T.astype(np.float64) for labels in self.labels])

    def every(self, step: int) -> SoftVotes:
        return SoftVotes(self.labels[:, :, ::step], self.gold[::step], self.weight * step)


@dataclass(frozen=True)
class NonLocalCase(CaseState):
    """A case with the soft votes of a sample of its disputed pixels."""

    sample: SoftVotes = field(default_factory=lambda: SoftVotes(np.empty((0, 0, 0)), np.empty(0, np.uint8), 1.0))


@register("non-local-staple")
class NonLocalSTAPLE(STAPLE):
    """STAPLE with images: a rater's label of a pixel is sought among pixels around it that look alike.

    For labels carried over from other images (atlases) that are registered not quite well: ``atlases=True``. Where all
    raters drew on the one image it evens out slips of the hand, since pixels that look alike and lie close together
    get like labels; raters who err alike everywhere it cannot correct.

    Parameters
    ----------
    atlases : images have one channel for the target, and one for each rater's own image, registered to the target, in
        the raters' order. By default all raters drew on the target, all of whose channels count
    search_radius : pixels along each axis within which a rater's label is sought; 0 is STAPLE
    patch_radius : pixels along each axis around those compared
    intensity_scale : difference of patches at which labels count less, in standard deviations of the image
    distance_scale : likewise, the distance in pixels
    max_iter, tol : stop after so many iterations, or when no entry of the matrices moves by more than tol
    foreground, prior, confusion_prior, exclude_consensus, scope : as for :class:`~annotruth.STAPLE`

    Notes
    -----
    Labels are sought for pixels that raters disagree on; where all agree, they count as they are. In large cases,
    raters are learnt from a part of the disputed pixels. ``confusion_`` is that of the labels that were sought out: it
    says what a rater would have said, had they met the pixel.

    References
    ----------
    Asman and Landman, Non-local statistical label fusion for multi-atlas segmentation, 2013.

    Examples
    --------
    >>> from annotruth import Annotations
    >>> rng = np.random.default_rng(0)
    >>> truth = (np.indices((48, 48)).sum(axis=0) // 12 % 2).astype(np.uint8)
    >>> image = truth + rng.normal(0, 0.2, truth.shape)
    >>> masks = np.stack([np.roll(truth, shift, axis=(0, 1)) for shift in ((0, 2), (2, 0), (-1, -1))])
    >>> annotations = Annotations.from_masks(masks[None], image[None, None])
    >>> fused, plain = NonLocalSTAPLE().fit(annotations), STAPLE().fit(annotations)
    >>> bool((fused.predict()[0] == truth).mean() > (plain.predict()[0] == truth).mean() + 0.02)
    True
    """

    smoothing = 0.0

    def __init__(
        self,
        atlases: bool = False,
        search_radius: int = 2,
        patch_radius: int = 1,
        intensity_scale: float = 0.5,
        distance_scale: float = 1.5,
        max_iter: int = 200,
        tol: float = 1e-4,
        foreground: str | int | None = None,
        prior: str | np.ndarray = "votes",
        confusion_prior: ConfusionPrior = None,
        exclude_consensus: bool = False,
        scope: str = "dataset",
    ) -> None:
        self.atlases = atlases
        self.search_radius = search_radius
        self.patch_radius = patch_radius
        self.intensity_scale = intensity_scale
        self.distance_scale = distance_scale
        self.max_iter = max_iter
        self.tol = tol
        self.foreground = foreground
        self.prior = prior
        self.confusion_prior = confusion_prior
        self.exclude_consensus = exclude_consensus
        self.scope = scope

    def check(self, annotations: Annotations) -> None:
        need_masks(annotations, "NonLocalSTAPLE", "DawidSkene")
        need_images(annotations, "NonLocalSTAPLE", "SpatialSTAPLE, or STAPLE(smoothing=0.5)")
        super().check(annotations)
        if min(self.search_radius, self.patch_radius) < 0:
            raise InputError(
                f"search_radius and patch_radius must be at least 0, found {self.search_radius}, {self.patch_radius}."
            )
        if not min(self.intensity_scale, self.distance_scale) > 0:
            raise InputError(
                "intensity_scale and distance_scale must be above 0, found "
                f"{self.intensity_scale}, {self.distance_scale}."
            )

    @property
    def refines(self) -> bool:
        return True

    @property
    def looks_at_images(self) -> bool:
        return True

    def estimate(self, votes: Votes, start: FusionState | None = None) -> FusionState:
        """Estimate as STAPLE does; max_iter and tol are for the soft labels."""
        whole = STAPLE(prior=self.prior, confusion_prior=self.confusion_prior, exclude_consensus=self.exclude_consensus)
        return whole.estimate(votes, start)

    def refine_case(self, case: Case, state: FusionState) -> CaseState:
        """Sample soft votes of a case; or, once the raters are known, give its truth."""
        votes = case.votes
        pixels = np.flatnonzero(case.to_pixels(_disputed(votes)[None].astype(np.uint8))[0])
        search = self._soft_votes(case)
        counts = np.zeros((votes.n_raters, votes.n_classes, votes.n_classes))
        if not isinstance(state, SpatialState):
            step = max(1, -(-len(pixels) // _CASE_SAMPLES))
            sample = search(pixels[::step], float(step))
            of_all = np.zeros((votes.n_raters, *sample.labels.shape[1:]), dtype=np.float32)
            of_all[case.position] = sample.labels
            nothing = np.empty((votes.n_classes, 0), dtype=np.float32)
            return NonLocalCase(nothing, counts, sample=SoftVotes(of_all, sample.gold, sample.weight))
        posterior = case.to_pixels(self.posterior(votes, state).T.astype(np.float32))
        for first in range(0, len(pixels), _PART):
            part = pixels[first : first + _PART]
            soft = search(part, 1.0)
            found = soft.posterior(state.prior, state.confusion[case.position])
            counts[case.position] += soft.counts(found)
            posterior[:, part] = found
        return CaseState(posterior, counts)

    def refine(self, votes: Votes, state: FusionState, refine_cases: RefineCases) -> FusionState:
        """Learn the raters from samples of all cases, then go through these once more."""
        parts = [
            case.sample for case in refine_cases(state) if isinstance(case, NonLocalCase) and len(case.sample.gold)
        ]
        step = max(1, -(-sum(len(part.gold) for part in parts) // _SAMPLES))
        parts = [part.every(step) for part in parts]
        pseudo = self.pseudo_counts(votes.raters, votes.n_classes)
        confusion, settled = state.confusion, not parts
        for _ in range(self.max_iter if parts else 0):
            before = confusion
            counts = self._agreed_counts(votes, state.prior, confusion)
            for part in parts:
                counts += part.counts(part.posterior(state.prior, confusion))
            confusion = confusion_from_counts(counts, pseudo)
            if np.abs(confusion - before).max() <= self.tol:
                settled = True
                break
        found = SpatialState(confusion, state.counts, state.prior, state.log_likelihood, settled, whole=state)
        counts = self._agreed_counts(votes, state.prior, confusion)
        for case in refine_cases(found, final=True):
            counts += case.counts
        return SpatialState(confusion, counts, state.prior, state.log_likelihood, settled, whole=state)

    def _agreed_counts(self, votes: Votes, prior: np.ndarray, confusion: np.ndarray) -> np.ndarray:
        """Expected counts (raters, classes, classes) of the pixels that raters agree on."""
        teaching = votes.answered & ~_disputed(votes) & (not self.exclude_consensus)
        posterior, _ = votes_posterior(votes, log_of(prior), log_of(confusion))
        return expected_counts(votes.answers, posterior, votes.n_raters, np.where(teaching, votes.weight, 0.0))

    def _soft_votes(self, case: Case) -> Callable[[np.ndarray, float], SoftVotes]:
        """A function that gives the soft votes of some pixels, each with a weight."""
        from annotruth.fusion._em.patches import PatchSearch  # compiled

        flat = case.image.reshape(len(case.image), -1)
        settings: dict[str, Any] = {
            "search_radius": self.search_radius, "patch_radius": self.patch_radius,
            "intensity_scale": self.intensity_scale, "distance_scale": self.distance_scale, "spacing": case.spacing,
        }  # fmt: skip
        if self.atlases:
            target, others = target_and_atlases(case, "NonLocalSTAPLE", "atlases=False")
            searches = [(PatchSearch(target, own[None], case.shape, **settings), [r]) for r, own in enumerate(others)]
        else:
            searches = [(PatchSearch(flat, flat, case.shape, **settings), list(range(len(case.masks))))]

        def give(pixels: np.ndarray, weight: float) -> SoftVotes:
            n_classes = case.votes.n_classes
            labels = [search.soft_labels(case.masks[raters], pixels, n_classes) for search, raters in searches]
            unknown = np.full(len(pixels), MISSING_PIXEL, dtype=np.uint8)
            return SoftVotes(np.concatenate(labels), unknown if case.gold is None else case.gold[pixels], weight)

        return give


def _disputed(votes: Votes) -> np.ndarray:
    """Bool (rows,): whose labels are sought among pixels around; known truth is none the less told by soft labels."""
    return votes.answered & ~(votes.unanimous() & (votes.gold == MISSING_LABEL))
