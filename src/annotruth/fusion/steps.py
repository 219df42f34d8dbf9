"""STEPS: STAPLE in which, at every disputed pixel, only the raters who are best around it are heard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion._em.box_sum import box_sum
from annotruth.fusion.dawid_skene import ConfusionEstimator, ConfusionPrior
from annotruth.fusion.em import best_classes, expected_counts, log_of, votes_posterior
from annotruth.fusion.mask_checks import check_window, need_images, need_masks, target_and_atlases
from annotruth.fusion.registry import register
from annotruth.fusion.spatial import SpatialState, whole_state
from annotruth.fusion.staple import STAPLE
from annotruth.fusion.state import CaseState, FusionState, RefineCases
from annotruth.fusion.stores import Case
from annotruth.fusion.votes import PatternLookup, Patterns, Votes, count_patterns, merge_patterns
from annotruth.validation import MISSING_PIXEL, one_of

_FLAT = 1e-6  # variance of a window that has no contrast


@dataclass(frozen=True)
class RankedCase(CaseState):
    """A case with the votes of the raters who are heard, at its disputed pixels."""

    patterns: Patterns | None = None


@register("steps")
class STEPS(STAPLE):
    """STAPLE for raters, or atlases, who are good in some places and not in others: locally, only the best are heard.

    At every pixel that raters disagree on they are ranked by what they did in a window around it. The labels of the
    ``n_best`` are kept, and STAPLE is fitted to these. Where all agree, their word is taken.

    Parameters
    ----------
    n_best : how many raters are heard at a pixel; those who are tied with the last of them are heard, too
    window : side of the window in pixels, odd; one number, or one for each axis
    ranking : by "agreement", the share of the window's pixels where a rater says what STAPLE says; or by "atlases", the
        normalised cross-correlation in the window of the rater's own image with the target's. That is for labels
        carried over from other images: images then have one channel for the target, and one for each rater's image,
        registered to the target, in the raters' order
    max_iter, tol, foreground, prior, confusion_prior, scope : as for :class:`~annotruth.STAPLE`

    Notes
    -----
    Windows are boxes, where the paper has a Gaussian kernel; its random field is that of ``STAPLE(smoothing=…)`` and
    left out here. With as many ``n_best`` as raters this is ``STAPLE(exclude_consensus=True)``. ``confusion_`` is over
    the disputed pixels at which a rater is heard.

    References
    ----------
    Cardoso and others, STEPS: similarity and truth estimation for propagated segmentations, 2013.

    Examples
    --------
    >>> from annotruth import Annotations
    >>> rng = np.random.default_rng(0)
    >>> truth = (np.indices((64, 64)).sum(axis=0) // 8 % 2).astype(np.uint8)
    >>> masks = np.stack([truth] * 4)
    >>> for rater in range(4):  # each fails in its own quarter of the picture
    ...     part = masks[rater, rater * 16 : rater * 16 + 16]
    ...     part[:] = np.where(rng.random(part.shape) < 0.5, part, 1 - part)
    >>> fused = STEPS(n_best=3, window=9).fit(Annotations.from_masks(masks[None]))
    >>> bool((fused.predict()[0] == truth).mean() > 0.99)
    True
    """

    smoothing = 0.0
    exclude_consensus = True
    warns_of_identifiability = False  # on disputed pixels alone nobody is faithful

    def __init__(
        self,
        n_best: int = 3,
        window: int | Sequence[int] = 15,
        ranking: str = "agreement",
        max_iter: int = 1000,
        tol: float = 1e-7,
        foreground: str | int | None = None,
        prior: str | np.ndarray = "votes",
        confusion_prior: ConfusionPrior = None,
        scope: str = "dataset",
    ) -> None:
        self.n_best = n_best
        self.window = window
        self.ranking = ranking
        self.max_iter = max_iter
        self.tol = tol
        self.foreground = foreground
        self.prior = prior
        self.confusion_prior = confusion_prior
        self.scope = scope

    def check(self, annotations: Annotations) -> None:
        need_masks(annotations, "STEPS", "DawidSkene")
        super().check(annotations)
        check_window(self.window, annotations)
        one_of(self.ranking, ("agreement", "atlases"), "ranking")
        if self.n_best < 1:
            raise InputError(f"n_best must be at least 1, found {self.n_best}.")
        if self.looks_at_images:
            need_images(annotations, "STEPS with ranking='atlases'", "ranking='agreement'")

    @property
    def refines(self) -> bool:
        return True

    @property
    def looks_at_images(self) -> bool:
        return self.ranking == "atlases"

    def refine_case(self, case: Case, state: FusionState) -> RankedCase:
        """Rank the raters at the disputed pixels of a case; the truth there, by the labels of the best."""
        votes = case.votes
        disputed = votes.answered & ~self._agreed(votes)
        pixels = np.flatnonzero(case.to_pixels(disputed[None].astype(np.uint8))[0])
        gold = None if case.gold is None else case.gold[pixels]
        masks = case.masks[:, pixels]
        masks[~heard(self._score(case, whole_state(state))[:, pixels], masks, self.n_best)] = MISSING_PIXEL
        found = count_patterns(masks, votes.n_classes, gold)
        of_all = np.full((votes.n_raters, len(found.counts)), MISSING_PIXEL, dtype=np.uint8)
        of_all[case.position] = found.votes
        patterns = Patterns(of_all, found.gold, found.counts)
        best = Votes.from_patterns(of_all, found.counts, found.gold, votes.n_classes)
        by_row, _ = votes_posterior(best, log_of(state.prior), log_of(state.confusion))
        posterior = case.to_pixels(self.posterior(votes, state).T.astype(np.float32))
        lookup = PatternLookup(found, votes.n_classes, with_gold=gold is not None)
        posterior[:, pixels] = lookup.write(masks, by_row.T.astype(np.float32), gold=gold)
        counts = expected_counts(best.answers, by_row, votes.n_raters, best.weight)
        return RankedCase(posterior, counts, patterns=patterns)

    def refine(self, votes: Votes, state: FusionState, refine_cases: RefineCases) -> FusionState:
        """Fit STAPLE to the labels that are heard in all cases."""
        parts = [case.patterns for case in refine_cases(state) if isinstance(case, RankedCase) and case.patterns]
        best = state
        if parts and any(len(part.counts) for part in parts):
            all_heard = merge_patterns(parts, votes.n_classes)
            kept = Votes.from_patterns(all_heard.votes, all_heard.counts, all_heard.gold, votes.n_classes, votes.raters)
            best = ConfusionEstimator.estimate(self, kept)  # STAPLE's own would leave out where the best agree
        found = SpatialState(best.confusion, best.counts, best.prior, best.log_likelihood, best.converged, whole=state)
        for _ in refine_cases(found, final=True):
            pass
        return found

    def _score(self, case: Case, whole: FusionState) -> np.ndarray:
        """How good raters are around every pixel, (raters of the batch, pixels)."""
        window = tuple(int(side) for side in np.broadcast_to(self.window, len(case.shape)))
        if self.looks_at_images:
            target, atlases = target_and_atlases(case, "STEPS", "ranking='agreement'")
            return np.stack([local_correlation(target[0], own, case.shape, window) for own in atlases])
        agreed = best_classes(self.posterior(case.votes, whole))[None].astype(np.uint8)
        return local_agreement(case.masks, case.to_pixels(agreed)[0], case.shape, window)


def heard(score: np.ndarray, masks: np.ndarray, n_best: int) -> np.ndarray:
    """Who is among the best at each pixel: bool (raters, pixels), of those who labelled it.

    Examples
    --------
    >>> heard(np.array([[0.9], [0.5], [0.5], [1.0]]), np.array([[0], [1], [1], [255]]), n_best=2)[:, 0]
    array([ True,  True,  True, False])
    """
    given = masks != MISSING_PIXEL
    if n_best >= len(masks):
        return given
    last = np.partition(np.where(given, score, -np.inf), len(masks) - n_best, axis=0)[len(masks) - n_best]
    return given & (score >= last)


def local_agreement(
    masks: np.ndarray, fused: np.ndarray, shape: tuple[int, ...], window: tuple[int, ...]
) -> np.ndarray:
    """Share of the pixels that a rater labelled around each pixel where the label is the fused one; (raters, pixels).

    Whole numbers are counted, so that raters who are equally good are tied exactly.
    """
    return np.stack(
        [
            _sum(mask == fused, shape, window) / np.maximum(_sum(mask != MISSING_PIXEL, shape, window), 1)
            for mask in masks
        ]
    )


def local_correlation(
    one: np.ndarray, other: np.ndarray, shape: tuple[int, ...], window: tuple[int, ...]
) -> np.ndarray:
    """Normalised cross-correlation of two images (pixels,) in a window around each pixel; 0 where one is flat."""
    n = _sum(np.ones(len(one)), shape, window)
    a, b = ((each - each.mean()) / max(float(each.std()), 1e-12) for each in (one.astype(np.float64), other))
    mean_a, mean_b, squares_a, squares_b, products = (
        _sum(each, shape, window, signed=True) / n for each in (a, b, a * a, b * b, a * b)
    )
    variance_a, variance_b = squares_a - mean_a**2, squares_b - mean_b**2
    flat = (variance_a < _FLAT) | (variance_b < _FLAT)
    return np.where(flat, 0.0, (products - mean_a * mean_b) / np.sqrt(np.where(flat, 1.0, variance_a * variance_b)))


def _sum(values: np.ndarray, shape: tuple[int, ...], window: tuple[int, ...], signed: bool = False) -> np.ndarray:
    """Sum over a window around each pixel, (pixels,) float64."""
    if signed:  # box sums are of numbers of at least 0
        return _sum(np.maximum(values, 0), shape, window) - _sum(np.maximum(-values, 0), shape, window)
    start = values.astype(np.float32)
    return box_sum(start, shape, window, np.empty_like(start)).astype(np.float64)
