"""What a data set is like, item by item: where its classes lie, and which values their pixels have.

From this a plan decides along which axes images may be mirrored, and to which values they are clipped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from annotruth.validation import MISSING_PIXEL

SAME_ORDER, FEWEST_ITEMS = 0.9, 5
"""Two classes have an order along an axis if it is the same in this share of the items that show both, of which there
must be so many: mirrored along it, one would look like the other. Likewise one class that lies on the same side of the
image's middle: of two kidneys only the left one may be of interest."""
FEWEST_OF_RATER = 10
"""Raters who take classes for one another hide their order, but not from what one who does not drew, on so many items:
of fewer, the same order may be chance."""
ASIDE = 2.0
"""A class lies on one side if its centre is so many standard deviations off the middle: a disc, then, touches it."""
PERCENTILES = (0.5, 99.5)
"""Of the values of foreground pixels: what lies beyond is clipped, where values range widely."""
HOUNSFIELD = -200
"""Whole numbers below this are taken as those of computed tomography."""
WIDE = 20
"""Values also range widely if all of them span so many times what those of the foreground span."""
VALUES = 10_000
"""Foreground pixels that are looked at in each item, at most."""


@dataclass(frozen=True)
class Fingerprint:
    """What one item is like.

    Attributes
    ----------
    size : (axes,) of the image, in pixels
    centre, spread : (axes,) mean and standard deviation of the positions of all pixels that a rater gave a class, in
        pixels, by the numbers of rater and class; background, class 0, is left out
    lowest, highest : (channels,) of all pixels
    whole : (channels,) whether all values are whole numbers
    foreground : (channels, pixels) values of some of the pixels that anybody called something else than background
    """

    size: np.ndarray
    centre: Mapping[tuple[int, int], np.ndarray]
    spread: Mapping[tuple[int, int], np.ndarray]
    lowest: np.ndarray
    highest: np.ndarray
    whole: np.ndarray
    foreground: np.ndarray

    @classmethod
    def of(cls, image: np.ndarray | None, labels: np.ndarray, classes: int) -> Fingerprint:
        """Look at an image (channels, *spatial), if there is one, and labels (raters, *spatial), 255 = not labelled."""
        centre, spread = {}, {}
        for rater, drawn in enumerate(labels):
            present = np.flatnonzero(np.bincount(drawn.ravel(), minlength=MISSING_PIXEL + 1)[1:classes]) + 1
            for number in present.tolist():
                centre[rater, number], spread[rater, number] = _place(drawn == number)
        pixels = np.zeros((0, *labels.shape[1:]), dtype=np.float32) if image is None else image
        anybody = ((labels > 0) & (labels < classes)).any(axis=0) if centre else np.zeros(labels.shape[1:], bool)
        found = np.flatnonzero(anybody)
        if len(found) > VALUES:  # evenly, so that nothing hangs on chance
            found = found[np.linspace(0, len(found) - 1, VALUES).astype(np.int64)]
        flat = pixels.reshape(len(pixels), anybody.size)
        whole = (flat == np.round(flat)).all(axis=1)
        size = np.array(labels.shape[1:])
        return cls(size, centre, spread, flat.min(axis=1), flat.max(axis=1), whole, flat[:, found])


def mirror_axes(items: Iterable[Fingerprint], axes: int) -> tuple[int, ...]:
    """The axes along which images may be mirrored.

    All but those along which two classes lie in the same order in nearly all items, as a left and a right kidney do:
    a network that learnt from mirrored images could not tell them apart. Classes lie one after the other along an axis
    where their centres are farther apart than they spread (the mean of their standard deviations). For the same reason
    an axis is left out if a class lies wholly on one side of the middle, the same one, in nearly all items: there may
    be something like it on the other side that nobody marked. Nearly all items are those of all raters together, or of
    any one of them.

    Examples
    --------
    >>> labels = np.zeros((1, 6, 6), dtype=np.uint8)
    >>> labels[0, 1:5, 0:2], labels[0, 1:5, 4:6] = 1, 2
    >>> mirror_axes([Fingerprint.of(None, labels, classes=3)] * 5, axes=2)
    (0,)
    >>> labels[labels == 2] = 0
    >>> mirror_axes([Fingerprint.of(None, labels, classes=3)] * 5, axes=2)
    (0,)
    """
    order: dict[tuple[int | None, int, int], list[np.ndarray]] = defaultdict(list)
    shown: dict[tuple[int | None, int, int], set[int]] = defaultdict(set)
    for index, item in enumerate(items):
        for (rater, one), (another, other) in combinations_with_replacement(sorted(item.centre), 2):
            if rater != another:
                continue
            if one == other:
                apart = item.centre[rater, one] - (item.size - 1) / 2
                clear = np.abs(apart) > ASIDE * item.spread[rater, one]
            else:
                apart = item.centre[rater, other] - item.centre[rater, one]
                clear = np.abs(apart) > (item.spread[rater, one] + item.spread[rater, other]) / 2
            for of in (rater, None):
                order[of, one, other].append(np.sign(apart) * clear)
                shown[of, one, other].add(index)
    ordered = np.zeros(axes, dtype=bool)
    for key, signs in order.items():
        if len(shown[key]) >= (FEWEST_ITEMS if key[0] is None else FEWEST_OF_RATER):
            before, after = ((np.stack(signs) == sign).mean(axis=0) for sign in (-1, 1))
            ordered |= np.maximum(before, after) >= SAME_ORDER
    return tuple(np.flatnonzero(~ordered).tolist())


def clip_values(items: Iterable[Fingerprint]) -> tuple[tuple[float, float], ...] | None:
    """The lowest and the highest value of each channel that are told apart; None where no channel ranges widely.

    A channel ranges widely if all its values are whole numbers and some lie below :data:`HOUNSFIELD`, as in computed
    tomography, or if they span more than :data:`WIDE` times what those of the foreground span. It is clipped to the
    foreground's :data:`PERCENTILES`; beside it, other channels keep all the values that were seen.

    Examples
    --------
    >>> labels = np.ones((1, 8, 8), dtype=np.uint8)
    >>> labels[0, 0] = 0
    >>> image = np.full((1, 8, 8), 40.0)
    >>> image[0, 0], image[0, 1] = -1000, 60
    >>> clip_values([Fingerprint.of(image, labels, classes=2)])
    ((40.0, 60.0),)
    >>> print(clip_values([Fingerprint.of(image.clip(0, 255), labels, classes=2)]))
    None
    """
    items = [item for item in items if len(item.lowest)]
    if not items or len({len(item.lowest) for item in items}) > 1:  # channels that differ are refused elsewhere
        return None
    lowest, highest = np.min([i.lowest for i in items], axis=0), np.max([i.highest for i in items], axis=0)
    whole = np.all([item.whole for item in items], axis=0)
    values = np.concatenate([item.foreground for item in items], axis=1)
    if values.shape[1] == 0:
        return None
    low, high = np.percentile(values, PERCENTILES, axis=1)
    wide = (low < high) & ((whole & (lowest < HOUNSFIELD)) | (highest - lowest > WIDE * (high - low)))
    if not wide.any():
        return None
    low, high = np.where(wide, low, lowest), np.where(wide, high, np.maximum(highest, np.nextafter(lowest, np.inf)))
    return tuple((float(f"{a:.6g}"), float(f"{b:.6g}")) for a, b in zip(low.tolist(), high.tolist()))


def _place(there: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation along each axis of the positions of pixels that are there."""
    centre, spread = np.empty((2, there.ndim))
    for axis, length in enumerate(there.shape):
        weight = there.sum(axis=tuple(other for other in range(there.ndim) if other != axis)).astype(np.float64)
        weight, position = weight / weight.sum(), np.arange(length)
        centre[axis] = weight @ position
        spread[axis] = np.sqrt(weight @ (position - centre[axis]) ** 2)
    return centre, spread
