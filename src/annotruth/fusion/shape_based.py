"""Shape-based averaging: the mean of raters' outlines, by signed distances to them."""

from __future__ import annotations

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.fusion._em.distance import squared_distance
from annotruth.fusion.em import confusion_from_counts
from annotruth.fusion.majority import MajorityVote
from annotruth.fusion.mask_checks import need_masks, pixel_counts
from annotruth.fusion.registry import register
from annotruth.fusion.state import CaseState, FusionState, RefineCases
from annotruth.fusion.stores import Case
from annotruth.fusion.votes import Votes
from annotruth.validation import MISSING_LABEL, MISSING_PIXEL


@register("shape-based")
class ShapeBasedAverage(MajorityVote):
    """Each pixel gets the class whose outlines it lies deepest inside of, on average over the raters.

    For smooth objects with outlines drawn a little apart: the result is smooth where a vote is ragged, and there are no
    islands and holes. All raters count alike. Thin or scattered objects that raters place differently are lost: use
    ``STAPLE``.

    Parameters
    ----------
    scope : whether ``confusion_`` is all there is ("dataset"), or ``case_confusion_`` is given too ("case")

    Notes
    -----
    A rater's signed distance to a class is the distance to the nearest pixel of it, or less than 0 inside: the distance
    to the nearest pixel of another class. Distances know the spacing. Pixels that a rater left out are neither
    inside nor outside, and there the rater is not asked. A rater who drew none of a class, or nothing else, is as far
    from its outline as the others are on average. ``predict_proba`` is the softmax of minus the mean distances in
    pixels: it orders the classes, and is no probability that was learnt.

    References
    ----------
    Rohlfing and Maurer, Shape-based averaging, 2007.

    Examples
    --------
    >>> from annotruth import Annotations
    >>> masks = np.zeros((1, 2, 9, 12), dtype=np.uint8)
    >>> masks[0, 0, :, :4], masks[0, 1, :, :8] = 1, 1
    >>> ShapeBasedAverage().fit(Annotations.from_masks(masks)).predict()[0, 0]
    array([1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0], dtype=uint8)
    """

    def check(self, annotations: Annotations) -> None:
        super().check(annotations)
        need_masks(annotations, "ShapeBasedAverage", "MajorityVote")

    @property
    def refines(self) -> bool:
        return True

    def refine_case(self, case: Case, state: FusionState) -> CaseState:
        """Average the distances of a case."""
        distance = mean_distance(case.masks, case.votes.n_classes, case.shape, case.spacing)
        settled = (case.votes.gold != MISSING_LABEL) | ~case.votes.answered
        posterior = case.to_pixels(self.posterior(case.votes, state).T.astype(np.float32))
        open_pixels = case.to_pixels(settled[None].astype(np.uint8))[0] == 0
        score = np.exp(distance.min(axis=0) - distance)
        posterior[:, open_pixels] = (score / score.sum(axis=0))[:, open_pixels]
        counts = np.zeros((case.votes.n_raters, len(posterior), len(posterior)))
        counts[case.position] = pixel_counts(case.masks, posterior)
        return CaseState(posterior, counts)

    def refine(self, votes: Votes, state: FusionState, refine_cases: RefineCases) -> FusionState:
        """Average every case once, and sum up."""
        counts = np.zeros_like(state.counts)
        for case in refine_cases(state, final=True):
            counts += case.counts
        return FusionState(confusion_from_counts(counts), counts, state.prior)


def mean_distance(
    masks: np.ndarray, n_classes: int, shape: tuple[int, ...], spacing: tuple[float, ...] | None = None
) -> np.ndarray:
    """Signed distance of each pixel to each class's outline, averaged over raters; (classes, pixels), inside below 0.

    Parameters
    ----------
    masks : (raters, pixels) uint8 labels, 255 = missing; pixels that nobody labelled have 0 for all classes
    spacing : by default alike along all axes. The result is in units of the smallest
    """
    widths = (1.0,) * len(shape) if spacing is None else tuple(width / min(spacing) for width in spacing)
    total, size = np.zeros((n_classes, masks.shape[1])), np.zeros((n_classes, masks.shape[1]), dtype=np.float32)
    n_measured, sign = np.zeros_like(size, dtype=np.int16), np.zeros_like(size, dtype=np.int16)
    n_asked = np.zeros(masks.shape[1], dtype=np.int16)
    for mask in masks:
        asked = mask != MISSING_PIXEL
        if not asked.any():
            continue
        n_asked += asked
        outside = np.stack([squared_distance(mask, label, shape, widths) for label in range(n_classes)])
        np.sqrt(outside, out=outside)
        for label in range(n_classes):
            others = np.delete(outside, label, axis=0).min(axis=0, initial=np.inf)
            signed = np.where(mask == label, -others, outside[label])
            measured = asked & np.isfinite(signed)
            total[label] += np.where(measured, signed, 0.0)
            size[label] += np.where(measured, np.abs(signed), 0.0)
            n_measured[label] += measured
            sign[label] += np.where(asked & ~measured, np.where(mask == label, -1, 1), 0).astype(np.int16)
    usual = np.where(n_measured > 0, size / np.maximum(n_measured, 1), 1.0)
    return (total + sign * usual) / np.maximum(n_asked, 1)
