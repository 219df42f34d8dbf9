"""What images show of the borders of fused masks: raters who err alike bear each other out, edges do not.

Some cases are looked at, once raters are fused. How well do the borders of the fused masks lie on edges of the images
(``metrics.edges``), beside each rater's, the vote's, and the fused ones moved outwards or inwards?
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import ndimage

from annotruth.fusion.stores import Case
from annotruth.metrics.edges import blurred, edge_information, near_borders
from annotruth.validation import MISSING_PIXEL

CASES, PIXELS, SLICES = 32, 2**19, 8
"""Looked at, at most: cases, pixels of them all around what is marked, and slices of a volume."""
MARGIN = 6
"""Pixels around what is marked that are looked at, too."""
MOVES = {-0.5: "borders a pixel farther in", 1.0: "borders a pixel farther out"}
"""What fused borders are compared with that nobody drew: objects without the pixels along their border, and with those
beside it. Pixels there are half a pixel away from the border, corners more."""
ENOUGH_PIXELS, LEAST_SHOWN = 500, 0.1
"""Of borders with fewer pixels near them, or half as many as near the fused ones, or of which images tell less, nothing
can be said."""
VOTED = "what most raters drew"
ELSEWHERE, BORNE_OUT = 0.8, 0.9
"""Images show borders elsewhere if they tell less than this share of what they tell of others; and they bear fused
masks out if they tell at least the second share of it, and no less than of the vote."""


class Shown(NamedTuple):
    """What images show of fused masks.

    Attributes
    ----------
    share : what they tell of the fused borders, as a share of what they tell of the best others
    others : which these are, in words
    borne_out : whether fused borders lie on edges about as well as any, the vote's among them
    """

    share: float
    others: str
    borne_out: bool

    @property
    def elsewhere(self) -> bool:
        """Whether images show borders that are not those of the fused masks."""
        return self.share < ELSEWHERE


class Plane(NamedTuple):
    """An image, or slices of a volume, around what is marked there.

    Attributes
    ----------
    image : (slices, channels, rows, columns), blurred
    fused, vote : (slices, rows, columns) classes
    drawn : the same of each rater, by position; 255 = not labelled
    """

    image: np.ndarray
    fused: np.ndarray
    vote: np.ndarray
    drawn: dict[int, np.ndarray]


def look(cases: Iterable[tuple[Case, np.ndarray]], raters: Sequence[str], classes: int) -> Shown | None:
    """Hold fused masks against the images of some cases; None where these say too little.

    Parameters
    ----------
    cases : each with its fused classes (pixels,)
    """
    planes, left = [], PIXELS
    for case, labels in cases:
        plane = _plane(case, labels, classes, left)
        if plane is not None:
            planes.append(plane)
            left -= plane.fused.size
        if left <= 0:
            break

    candidates = [(VOTED, [each.vote for each in planes], planes)]
    for pixels, words in MOVES.items():
        moved = [np.stack([_moved(one, pixels, classes) for one in each.fused]) for each in planes]
        candidates.append((words, moved, planes))
    for rater, name in enumerate(raters):
        some = [each for each in planes if rater in each.drawn]
        candidates.append((f"what {name} drew", [each.drawn[rater] for each in some], some))
    shares = {}
    for words, labellings, some in candidates:
        fused, images = [each.fused for each in some], [each.image for each in some]
        if _near(labellings, classes) >= max(ENOUGH_PIXELS, _near(fused, classes) / 2):
            theirs = edge_information(labellings, images, classes)
            if theirs >= LEAST_SHOWN:
                shares[words] = edge_information(fused, images, classes) / theirs
    if not shares:
        return None
    others = min(shares, key=lambda words: shares[words])
    return Shown(shares[others], others, shares[others] >= BORNE_OUT and shares.get(VOTED, 1.0) >= 1)


def some_of(count: int) -> np.ndarray:
    """Positions of the cases that are looked at, of so many.

    Examples
    --------
    >>> len(some_of(1000)), some_of(3)
    (32, array([0, 1, 2]))
    """
    return np.unique(np.linspace(0, count - 1, min(count, CASES)).astype(int))


def _plane(case: Case, fused: np.ndarray, classes: int, pixels: int) -> Plane | None:
    """What is looked at of a case; None where nobody marked anything."""
    masks = np.concatenate([fused[None], case.masks]).reshape(-1, *case.shape)
    marked = ((masks > 0) & (masks != MISSING_PIXEL)).any(axis=0)
    if not marked.any():
        return None
    around = tuple(
        slice(max(int(places.min()) - MARGIN, 0), int(places.max()) + 1 + MARGIN) for places in np.nonzero(marked)
    )
    image, masks = case.image[(slice(None), *around)], masks[(slice(None), *around)]
    if len(case.shape) == 2:
        image, masks = image[:, None], masks[:, None]
    elif len(case.shape) == 3:
        along = np.flatnonzero(marked[around].any(axis=(1, 2)))
        some = along[np.unique(np.linspace(0, len(along) - 1, min(len(along), SLICES)).astype(int))]
        image, masks = image[:, some], masks[:, some]
    else:
        return None
    fewer = max(1, pixels // masks[0, 0].size)
    image, masks = image[:, :fewer], masks[:, :fewer]
    votes = np.stack([(masks[1:] == number).sum(axis=0) for number in range(classes)])
    drawn = {int(who): one for who, one in zip(case.position, masks[1:]) if (one != MISSING_PIXEL).any()}
    return Plane(blurred(image.swapaxes(0, 1)), masks[0], votes.argmax(axis=0), drawn)


def _near(labellings: Sequence[np.ndarray], classes: int) -> int:
    return sum(int(near_borders([each], classes).sum()) for each in labellings)


def _moved(labels: np.ndarray, pixels: float, classes: int) -> np.ndarray:
    """Classes (rows, columns) whose borders lie so many pixels farther out."""
    away = np.full((classes, *labels.shape), np.inf)
    for number in range(1, classes):
        inside = labels == number
        if inside.any():
            away[number] = ndimage.distance_transform_edt(~inside) - ndimage.distance_transform_edt(inside)
            away[number] += np.where(inside, 0.5, -0.5)
    away[0] = pixels
    return away.argmin(axis=0)
