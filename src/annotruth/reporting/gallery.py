"""What is shown of single cases: the gallery of disputed ones, and maps of where each rater errs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.reporting import tiles
from annotruth.reporting.case_statistics import Case, CaseStatistics
from annotruth.reporting.model import Model, estimate, image_of, spacing_of
from annotruth.reporting.words import number, percent
from annotruth.validation import MISSING_PIXEL

MOST_RATERS = 8
"""More raters than these do not fit beside one another."""
MAPS_PER_RATER = 3


@dataclass(frozen=True)
class Tile:
    """One small picture: an overlay (or none) upon the picture of a case."""

    case: int
    title: str
    note: str
    alt: str
    overlay: str | None = None


@dataclass(frozen=True)
class View:
    """One case as it is shown: a flat picture, or the chosen slice of a volume.

    Attributes
    ----------
    picture : data URI of the image
    posterior : (classes, height, width)
    labels : (height, width) the estimate
    masks : (raters, height, width), 255 = not labelled
    negatives : (raters, height, width) the class that a pixel was drawn not to be, 255 = nothing said; or None
    truth : (height, width), 255 = unknown, or None
    """

    picture: str
    posterior: np.ndarray
    labels: np.ndarray
    masks: np.ndarray
    negatives: np.ndarray | None
    truth: np.ndarray | None
    plane: tiles.Plane | None

    @property
    def small(self) -> bool:
        """Whether single pixels should stay visible when enlarged."""
        return max(self.labels.shape) <= tiles.SIDE // 2


@dataclass(frozen=True)
class Shown:
    """A case of the gallery with its pictures and what is said about it."""

    case: Case
    view: View
    tiles: list[Tile]
    notes: list[str]


@dataclass(frozen=True)
class RaterMaps:
    """Where one rater errs, on a few cases."""

    rater: str
    tiles: list[Tile]


@dataclass
class Gallery:
    """Draws cases of some annotations under a model; each case is read and estimated once."""

    model: Model
    ann: Annotations
    statistics: CaseStatistics
    views: dict[int, View] = field(default_factory=dict)

    def view(self, index: int) -> View:
        """Read, estimate and cut one case."""
        if index not in self.views:
            image, masks = image_of(self.ann, index), self.ann.item_masks(index)
            posterior = estimate(self.model, self.ann, index)
            labels = posterior.argmax(axis=0).astype(np.uint8)
            plane = tiles.plane_of(masks, labels)
            truth = tiles.cut(self.ann.item_truth(index), plane) if self.ann.has_truth else None
            self.views[index] = View(
                picture=tiles.picture(tiles.cut(image, plane)),
                posterior=tiles.cut(posterior, plane),
                labels=tiles.cut(labels, plane),
                masks=tiles.cut(masks, plane),
                negatives=tiles.cut(self.ann.item_negatives(index), plane) if self.ann.has_negatives else None,
                truth=truth,
                plane=plane,
            )
        return self.views[index]

    def show(self, case: Case) -> Shown:
        """Draw everything about one case."""
        view, name = self.view(case.index), case.name
        colours = tiles.class_colours(len(self.ann.classes))
        labelled = np.flatnonzero(case.labelled | _drawn(view.negatives, len(self.ann.raters)))
        shown = labelled[np.argsort(case.agreement[labelled], kind="stable")][:MOST_RATERS]
        made = [Tile(case.index, "Image", "", f"Image of {name}")]
        for r in sorted(shown.tolist()):
            made.append(self._drawn_tile(case, view, r, colours))
        overlay = tiles.regions(view.labels, colours)
        made.append(Tile(case.index, "Estimated truth", "", f"Estimated truth of {name}", overlay))
        # With two classes the map shows the foreground; with more, how likely another class than the estimated one is.
        two = len(self.ann.classes) == 2
        shares = view.posterior[1] if two else 1 - view.posterior.max(axis=0)
        title = "Probability" if two else "Uncertainty"
        overlay = tiles.heat(shares, tiles.PROBABILITY_MAP)
        made.append(Tile(case.index, title, "", f"{title} of the estimated truth of {name}", overlay))
        if view.truth is not None and case.dice is not None:
            kinds = tiles.errors(view.labels, view.truth)
            overlay = tiles.regions(kinds, [tiles.RIGHT, tiles.MISSED, tiles.ADDED, tiles.OTHER])
            note = f"Dice {number(case.dice)}"
            alt = f"Estimated truth of {name} against the truth: right, missed and added regions, {note}"
            made.append(Tile(case.index, "Against the truth", note, alt, overlay))
        return Shown(case, view, made, self._notes(case, view, len(labelled), len(shown)))

    def _drawn_tile(self, case: Case, view: View, r: int, colours: list[str]) -> Tile:
        """What one rater drew: a mask, or strokes of what is there and what is not."""
        rater, mask = self.ann.raters[r], view.masks[r]
        note = f"Dice {number(case.agreement[r])}"
        if not self.coarse:
            overlay, alt = tiles.regions(mask, colours), f"Mask of {case.name} drawn by {rater}, {note}"
            return Tile(case.index, rater, note, alt, overlay)
        negative = None if view.negatives is None else view.negatives[r]
        marked = (mask != MISSING_PIXEL) | (False if negative is None else negative != MISSING_PIXEL)
        note = f"{percent(float(marked.mean()))} marked"
        alt = f"What {rater} drew on {case.name} as being there and as not being there, {note}"
        return Tile(case.index, rater, note, alt, tiles.strokes(mask, negative, colours))

    @property
    def coarse(self) -> bool:
        """Whether raters drew strokes, not whole masks: what is not there, or less than half of what they saw."""
        return self.ann.has_negatives or self.statistics.missing_pixels > 0.5

    def rater_maps(self, raters: Iterable[str], cases: Sequence[Case]) -> tuple[list[RaterMaps], float | None]:
        """Draw where raters err: by probability for pixel-wise methods, else where they differ from the estimate.

        Returns
        -------
        the maps, and the probability that their brightest colour stands for; None where they show differences
        """
        raters = list(raters)
        errors = {rater: [self._error_map(rater, case) for case in cases[:MAPS_PER_RATER]] for rater in raters}
        known = [float(error.max()) for maps in errors.values() for error in maps if error is not None]
        if known:
            # One scale for all raters, so that they compare, and no wider than needed, so that small errors show.
            top = max(math.ceil(10 * max(known) - 1e-6), 1) / 10
            drawn = {rater: self._probability_tiles(rater, cases, errors[rater], top) for rater in raters}
        else:
            top = None
            drawn = {rater: self.difference_tiles(rater, cases) for rater in raters}
        return [RaterMaps(rater, made) for rater, made in drawn.items() if made], top

    def _notes(self, case: Case, view: View, labelled: int, shown: int) -> list[str]:
        notes = [f"Disagreement {percent(case.disagreement)}"]
        if case.dice is not None:
            notes.insert(0, f"Dice {number(case.dice)}")
        if view.plane is not None:
            notes.append(f"slice {view.plane.index + 1} of {view.plane.count}")
        if labelled < len(self.ann.raters):
            notes.append(f"labelled by {labelled} of {len(self.ann.raters)} raters")
        if shown < labelled:
            notes.append(f"{shown} of {labelled} masks shown: those that differ most from the estimate")
        return notes

    def _error_map(self, rater: str, case: Case) -> np.ndarray | None:
        """Probability (height, width) that the rater mislabels a pixel: 1 - Σ_i p_i A[i, i]."""
        if rater not in self.model.annotators_:
            return None
        told = spacing_of(self.ann, case.index)
        confusion = self.model.annotators_[rater].confusion_map(image_of(self.ann, case.index), **told)
        if confusion is None:
            return None
        view = self.view(case.index)
        right = tiles.cut(np.einsum("ii...->i...", np.asarray(confusion)), view.plane)
        return 1 - (view.posterior * right).sum(axis=0)

    def _probability_tiles(
        self, rater: str, cases: Sequence[Case], errors: Sequence[np.ndarray | None], top: float
    ) -> list[Tile]:
        made = []
        for case, error in zip(cases, errors):
            if error is not None:
                note = f"mean {percent(float(error.mean()))}"
                alt = f"Probability that {rater} mislabels each pixel of {case.name}, {note}"
                overlay = tiles.heat(error / top, tiles.ERROR_MAP, self.view(case.index).labels)
                made.append(Tile(case.index, case.name, note, alt, overlay))
        return made

    def difference_tiles(self, rater: str, cases: Sequence[Case]) -> list[Tile]:
        """Where the rater's masks differ from the estimate: of the cases given first, else where they do most."""
        if rater not in self.ann.raters:
            return []
        r = self.ann.raters.index(rater)
        # Cases of the gallery first: their pictures are in the file already.
        in_gallery = {case.index for case in cases}
        labelled = [case for case in self.statistics.cases if case.labelled[r]]
        labelled.sort(key=lambda case: (case.index not in in_gallery, case.agreement[r]))
        made = []
        for case in labelled[:MAPS_PER_RATER]:
            view, note = self.view(case.index), f"Dice {number(case.agreement[r])}"
            kinds = tiles.errors(view.masks[r], view.labels)
            kinds[kinds == 1] = 0  # only the differences
            overlay = tiles.regions(kinds, [tiles.RIGHT, tiles.MISSED, tiles.ADDED, tiles.OTHER])
            alt = f"Where {rater}'s mask of {case.name} differs from the estimated truth, {note}"
            made.append(Tile(case.index, case.name, note, alt, overlay))
        return made


def _drawn(negatives: np.ndarray | None, raters: int) -> np.ndarray:
    """Who drew anything that is not there: bool (raters,)."""
    if negatives is None:
        return np.zeros(raters, dtype=bool)
    return (negatives != MISSING_PIXEL).reshape(raters, -1).any(axis=1)
