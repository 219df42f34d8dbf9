"""How often which value, or colour, stands in many masks' files: what a rule for reading them is made from."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from annotruth.errors import InputError
from annotruth.io.masks.planes import Planes

MAX_DISTINCT = 20_000
"""Distinct values from which a file is no mask, whatever is done to it."""
MAX_TABLE = 2**17
"""Whole numbers between the lowest and highest value up to which all are counted."""
CLEAR_SHARE = 0.05
"""Share of a value's pixels that must lie amid their like; along interpolated edges hardly any do."""

Value = int | float
"""Of a pixel; colours are whole numbers."""


@dataclass
class Counts:
    """How often values stand in files.

    Attributes
    ----------
    all : pixels by value
    flat : those that lie amid their like: all of their neighbours have the same value
    """

    all: Counter[Value] = field(default_factory=Counter)
    flat: Counter[Value] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return sum(self.all.values())

    @property
    def clear(self) -> list[Value]:
        """Values that fill areas, in order."""
        return sorted(value for value, count in self.all.items() if self.flat[value] > CLEAR_SHARE * count)

    def add(self, plane: np.ndarray, where: str) -> None:
        """Count the values of a plane (*spatial)."""
        if not np.isfinite(plane).all():
            raise InputError(f"{where}: the mask holds NaN or infinite values. Write a number for every pixel.")
        values, numbers = distinct(plane)
        if len(values) > MAX_DISTINCT:
            raise InputError(f"{where}: {len(values)} different values: this is a picture, no mask. Replace it.")
        counts = np.bincount(numbers.reshape(-1), minlength=len(values))
        inner, amid = _amid_their_like(numbers)
        flat = np.bincount(inner[amid], minlength=len(values))
        names = values.tolist()
        self.all.update(dict(zip(names, counts.tolist())))
        self.flat.update({name: count for name, count in zip(names, flat.tolist()) if count})


@dataclass
class Tally:
    """What masks hold, counted over all of them.

    Attributes
    ----------
    values : of masks in grey
    colours : of masks in colour, as numbers 0xRRGGBB
    n_files : files counted
    equal_channels : files in colour whose channels are equal
    from_alpha, alpha_dropped : files whose transparency is the mask, and files whose transparency says nothing
    coloured, lossy : files in colour whose channels differ, and files that a lossy format has changed
    layers : files by their number of layers, where there are several
    layer_sizes : how many pixels each layer marks
    overlap, uncovered : pixels that several layers mark, and that none does
    """

    values: Counts = field(default_factory=lambda: Counts())
    colours: Counts = field(default_factory=lambda: Counts())
    n_files: int = 0
    equal_channels: int = 0
    from_alpha: int = 0
    alpha_dropped: int = 0
    coloured: int = 0
    lossy: int = 0
    layers: Counter[int] = field(default_factory=Counter)
    layer_sizes: Counter[int] = field(default_factory=Counter)
    overlap: int = 0
    uncovered: int = 0

    def add(self, planes: Planes, where: str, lossy: bool = False) -> None:
        """Count a file.

        Examples
        --------
        >>> tally = Tally()
        >>> tally.add(Planes(np.full((3, 2, 2), 255), coloured=True), "a.png")
        >>> tally.values.all, tally.equal_channels
        (Counter({255: 4}), 1)
        """
        if planes.pixels.dtype.kind not in "buif":
            raise InputError(f"{where}: the mask holds no numbers ({planes.pixels.dtype}). Save it anew.")
        if len(planes.pixels) > 1 and not planes.coloured:
            self._add_layers(planes.pixels, where)
        elif carries_mask(planes):
            self.values.add(np.asarray(planes.alpha), where)
            self.from_alpha += 1
        else:
            self.alpha_dropped += planes.alpha is not None
            self.equal_channels += planes.is_grey and len(planes.pixels) > 1
            self.coloured += not planes.is_grey
            if planes.is_grey:
                self.values.add(planes.grey(), where)
            else:
                self.colours.add(colour_codes(planes.pixels), where)
        self.lossy += lossy
        self.n_files += 1

    def all_colours(self) -> Counts:
        """Counts of colours, a grey value being the colour of three equal channels."""
        found = Counts(Counter(self.colours.all), Counter(self.colours.flat))
        for mine, theirs in ((found.all, self.values.all), (found.flat, self.values.flat)):
            mine.update({int(value) * 0x010101: count for value, count in theirs.items() if 0 <= value <= 255})
        return found

    def _add_layers(self, layers: np.ndarray, where: str) -> None:
        if not np.isfinite(layers).all():
            raise InputError(f"{where}: the mask holds NaN or infinite values. Write a number for every pixel.")
        on = marked(layers)
        total = on.sum(axis=0)
        self.layers[len(layers)] += 1
        self.layer_sizes.update({number: int(layer.sum()) for number, layer in enumerate(on)})
        self.overlap += int((total > 1).sum())
        self.uncovered += int((total == 0).sum())


def distinct(plane: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The values of a plane, sorted, and the place of each pixel's in them, (*spatial).

    Examples
    --------
    >>> distinct(np.array([[0, 255], [255, 4]]))
    (array([  0,   4, 255]), array([[0, 2], [2, 1]]))
    """
    low, high = plane.min(), plane.max()
    if plane.dtype == bool or high - low > MAX_TABLE or not np.isfinite(low + high):
        values, places = np.unique(plane, return_inverse=True)
        return values, places.reshape(plane.shape)
    whole = plane.astype(np.intp)
    if plane.dtype.kind == "f" and not np.array_equal(whole, plane):
        values, places = np.unique(plane, return_inverse=True)
        return values, places.reshape(plane.shape)
    # A table of all whole numbers in between takes no sorting, which is slow for volumes.
    whole -= int(low)
    seen = np.bincount(whole.reshape(-1)) > 0
    return np.flatnonzero(seen) + int(low), (np.cumsum(seen) - 1)[whole]


def _amid_their_like(plane: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pixels with neighbours on all sides, and which of them are equal to all these, also across corners."""
    small = plane.astype(np.uint8 if plane.max() < 256 else np.uint16)
    inner, amid = small, np.ones(small.shape, dtype=bool)
    for axis in range(plane.ndim):
        before, here, after = (
            (slice(None),) * axis + (slice(start, stop or None),) for start, stop in ((0, -2), (1, -1), (2, 0))
        )
        equal = (inner[here] == inner[before]) & (inner[here] == inner[after])
        amid = amid[here] & amid[before] & amid[after] & equal
        inner = inner[here]
    return inner, amid


def carries_mask(planes: Planes) -> bool:
    """Whether transparency is the mask: colours are the same everywhere, opaqueness is not."""
    if planes.alpha is None or planes.alpha.min() == planes.alpha.max():
        return False
    visible = planes.pixels[:, planes.alpha > 0]
    return bool((visible == visible[:, :1]).all())


def colour_codes(pixels: np.ndarray) -> np.ndarray:
    """Colours (3, *spatial) of up to 255 as numbers 0xRRGGBB (*spatial).

    Examples
    --------
    >>> hex(colour_codes(np.array([255, 0, 16]).reshape(3, 1))[0])
    '0xff0010'
    """
    red, green, blue = (np.asarray(plane).astype(np.int64) for plane in pixels)
    if max(red.max(), green.max(), blue.max()) > 255:
        red, green, blue = red >> 8, green >> 8, blue >> 8
    return (red << 16) | (green << 8) | blue


def marked(layers: np.ndarray) -> np.ndarray:
    """Which pixels layers mark (bool): those above half of the highest value of all."""
    return layers > layers.max() / 2 if layers.max() > 0 else np.zeros(layers.shape, dtype=bool)
