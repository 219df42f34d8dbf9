"""Small pictures of one case as data URIs: the image once, and see-through overlays to lay upon it."""

from __future__ import annotations

import io
from base64 import b64encode
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.colors import to_hex, to_rgb
from PIL import Image
from scipy.ndimage import binary_erosion
from skimage.transform import resize

from annotruth.validation import MISSING_PIXEL

SIDE = 384
"""Longest side of a tile in pixels."""
OKABE_ITO = ("#e69f00", "#56b4e9", "#009e73", "#f0e442", "#cc79a7", "#d55e00", "#0072b2")
"""Colours that colour-blind readers tell apart (Okabe and Ito)."""
RIGHT, MISSED, ADDED, OTHER = "#009e73", "#56b4e9", "#d55e00", "#cc79a7"
PROBABILITY_MAP, ERROR_MAP = "viridis", "magma"
FILL, LINE = 110, 255
"""Opacity of a region and of its outline."""
STROKE = 190
"""Opacity of a stroke."""
BACKGROUND = "#b0b0b0"
"""Of strokes that say that there is background."""
STRIPES = 12
"""Pixels of a tile from one stripe to the next, where strokes say what is not there."""
LINE_WIDTH = 3
"""Of outlines, in pixels of a tile; thinner ones tear when a browser shrinks the tile."""


@dataclass(frozen=True)
class Plane:
    """The slice of a volume that is shown."""

    axis: int
    index: int
    count: int


def class_colours(n_classes: int) -> list[str]:
    """Colours of the classes 1 … n_classes - 1; the background has none.

    Examples
    --------
    >>> class_colours(3)
    ['#e69f00', '#56b4e9']
    """
    if n_classes - 1 <= len(OKABE_ITO):
        return list(OKABE_ITO[: n_classes - 1])
    wheel = matplotlib.colormaps["turbo"](np.linspace(0.05, 0.95, n_classes - 1))
    return [to_hex(colour) for colour in wheel]


def gradient(colour_map: str) -> str:
    """A colour map as the stops of a CSS gradient, for a legend."""
    return ", ".join(to_hex(c) for c in matplotlib.colormaps[colour_map](np.linspace(0, 1, 9)))


def plane_of(masks: np.ndarray, labels: np.ndarray) -> Plane | None:
    """Choose the slice of a volume with most foreground, nearest to the middle where several have as much.

    Slices run along the shortest axis (of equal ones the last), which in scans is the one between slices.

    Parameters
    ----------
    masks : (raters, *spatial) labels, 255 = not labelled
    labels : (*spatial) the estimate

    Returns
    -------
    the slice, or None for a flat picture
    """
    if labels.ndim < 3:
        return None
    axis = labels.ndim - 1 - int(np.argmin(labels.shape[::-1]))
    others = tuple(a for a in range(labels.ndim) if a != axis)
    marked = ((masks > 0) & (masks != MISSING_PIXEL)).sum(axis=0) + (labels > 0)
    foreground = marked.sum(axis=others)
    candidates = np.flatnonzero(foreground == foreground.max())
    middle = (len(foreground) - 1) / 2
    return Plane(axis, int(candidates[np.argmin(abs(candidates - middle))]), len(foreground))


def cut(array: np.ndarray, plane: Plane | None) -> np.ndarray:
    """Give the shown slice (..., height, width) of an array (..., *spatial)."""
    return array if plane is None else np.take(array, plane.index, axis=array.ndim - 3 + plane.axis)


def picture(image: np.ndarray, side: int = SIDE) -> str:
    """An image (channels, height, width) as PNG, grey or (three channels) in colour, contrast from its own values.

    ``side`` is how long its longer side may be, in pixels.
    """
    shown = image if len(image) == 3 else image[:1]
    low, high = np.percentile(shown, (0.5, 99.5))
    levels = np.clip((shown - low) / max(float(high - low), 1e-9), 0, 1)
    if max(levels.shape[1:]) > side:
        levels = resize(levels, (len(levels), *_size(levels.shape[1:], side)), anti_aliasing=True)
    levels = np.rint(255 * levels).astype(np.uint8)
    return _png(Image.fromarray(levels[0] if len(levels) == 1 else np.moveaxis(levels, 0, -1)))


def regions(labels: np.ndarray, colours: list[str]) -> str:
    """Labels (height, width) as tinted, outlined regions on nothing; label 0 and 255 stay clear.

    Parameters
    ----------
    labels : 0 = clear, k = the k-th colour
    colours : hexadecimal colours of the labels 1, 2, …
    """
    labels = _scaled(labels)
    layer = np.zeros((*labels.shape, 4), dtype=np.uint8)
    for label, colour in enumerate(colours, start=1):
        region = labels == label
        if region.any():
            inside = binary_erosion(region, iterations=LINE_WIDTH, border_value=1)
            layer[region, :3] = np.rint(255 * np.array(to_rgb(colour)))
            layer[region, 3] = LINE
            layer[inside, 3] = FILL
    return _png(Image.fromarray(layer))


def strokes(positive: np.ndarray, negative: np.ndarray | None, colours: list[str]) -> str:
    """Coarse drawings (height, width) on nothing: marks in their class's colour, those of what is not there striped.

    Parameters
    ----------
    positive : labels, 0 = background, which is grey here, 255 = not marked
    negative : the class that a pixel is not, 255 = nothing said; or None
    colours : hexadecimal colours of the labels 1, 2, …
    """
    positive = _scaled(positive)
    layer = np.zeros((*positive.shape, 4), dtype=np.uint8)
    stripes = np.indices(positive.shape).sum(axis=0) % STRIPES < STRIPES // 2
    said_not = np.full_like(positive, MISSING_PIXEL) if negative is None else _scaled(negative)
    for labels in (np.where(stripes, said_not, MISSING_PIXEL), positive):
        for label, colour in enumerate([BACKGROUND, *colours]):
            layer[labels == label, :3] = np.rint(255 * np.array(to_rgb(colour)))
            layer[labels == label, 3] = STROKE
    return _png(Image.fromarray(layer))


def heat(values: np.ndarray, colour_map: str, labels: np.ndarray | None = None) -> str:
    """Shares (height, width) between 0 and 1 in the colours of a map, labels outlined in white where that fits."""
    levels = np.rint(np.clip(_scaled(values), 0, 1) * 254).astype(np.uint8)
    if labels is not None:
        region = _scaled(labels) > 0
        outline = region & ~binary_erosion(region, iterations=LINE_WIDTH, border_value=1)
        if 2 * outline.sum() <= region.sum():  # the outline of thin structures would hide what it surrounds
            levels[outline] = 255
    palette = matplotlib.colormaps[colour_map](np.linspace(0, 1, 255), bytes=True)[:, :3]
    tile = Image.fromarray(levels)
    tile.putpalette(np.vstack([palette, [[255, 255, 255]]]).astype(np.uint8).tobytes())
    return _png(tile)


def matrix(confusion: np.ndarray) -> str:
    """A large confusion matrix as a picture: right answers in blue, wrong ones in orange, stronger = more often."""
    strength = np.sqrt(np.clip(confusion, 0, 1))[..., None]  # the root keeps rare confusions visible
    ink = np.where(np.eye(len(confusion), dtype=bool)[..., None], to_rgb("#0b5fa5"), to_rgb("#c2510a"))
    return _png(Image.fromarray(np.rint(255 * (1 - strength * (1 - ink))).astype(np.uint8)))


def errors(labels: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Compare labels with a reference, both (height, width): 1 right, 2 missed, 3 added, 4 other class, 0 neither.

    Examples
    --------
    >>> import numpy as np
    >>> errors(np.array([[1, 0, 1, 2, 0]]), np.array([[1, 1, 0, 1, 0]]))
    array([[1, 2, 3, 4, 0]], dtype=uint8)
    """
    known = (labels != MISSING_PIXEL) & (reference != MISSING_PIXEL)
    drawn, there = labels > 0, reference > 0
    kinds = np.select([drawn & there & (labels == reference), ~drawn & there, drawn & ~there, drawn], [1, 2, 3, 4], 0)
    return np.where(known, kinds, 0).astype(np.uint8)


def _size(shape: tuple[int, ...], side: int = SIDE) -> tuple[int, int]:
    """Height and width of a tile: whole multiples of a small picture, the fitting fraction of a large one."""
    longest = max(shape)
    scale = max(side // longest, 1) if longest <= side else side / longest
    return max(round(shape[0] * scale), 1), max(round(shape[1] * scale), 1)


def _scaled(array: np.ndarray) -> np.ndarray:
    """Bring (height, width) to the size of a tile, each pixel from the nearest one."""
    rows, columns = ((np.arange(new) * old // new) for new, old in zip(_size(array.shape), array.shape, strict=True))
    return array[np.ix_(rows, columns)]


def _png(tile: Image.Image) -> str:
    file = io.BytesIO()
    tile.save(file, "PNG", optimize=True)
    return "data:image/png;base64," + b64encode(file.getvalue()).decode("ascii")
