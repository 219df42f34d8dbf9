"""Contours that were drawn onto a copy of a photograph: lines are where the two differ, masks lie inside them."""

from __future__ import annotations

import numpy as np
from scipy import ndimage
from skimage.morphology import skeletonize

from annotruth.errors import InputError

MIN_DIFFERENCE = 40
"""Of 255, in any channel: what saving as JPEG twice hardly ever reaches, and a drawn line does."""
MIN_LINE_PIXELS = 20
MAX_GAP = 5
"""Pixels of a gap in a line up to which it is closed."""
MIN_REGION_SHARE = 0.01
"""Share of the outer region from which a part of it is no gap between lines."""


def fill_nested_contours(drawn: np.ndarray, plain: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fill two closed lines, one inside the other: optic disc and cup.

    Parameters
    ----------
    drawn, plain : (channels, height, width) of the photograph with and without lines

    Returns
    -------
    What the outer and the inner line enclose (height, width) bool, half of the line's width with it.

    Examples
    --------
    >>> plain = np.zeros((3, 40, 40))
    >>> drawn = plain.copy()
    >>> drawn[:, 5:35, [5, 34]] = drawn[:, [5, 34], 5:35] = 255
    >>> drawn[:, 15:25, [15, 24]] = drawn[:, [15, 24], 15:25] = 255
    >>> [int(mask.sum()) for mask in fill_nested_contours(drawn, plain)]
    [900, 96]
    """
    if drawn.shape != plain.shape:
        sizes = " and ".join("×".join(map(str, each.shape[1:])) for each in (drawn, plain))
        raise InputError(f"the photograph with lines and the one without differ in size, {sizes}. Replace one.")
    lines = _without_specks(np.abs(drawn.astype(np.float32) - plain.astype(np.float32)).max(axis=0) > MIN_DIFFERENCE)
    if not lines.any():
        raise InputError("no line is drawn: the photograph is the same as the one without lines. Replace it.")
    half = int(lines.sum() / max(skeletonize(lines).sum(), 1)) // 2
    for gap in range(MAX_GAP + 1):
        closed = ndimage.binary_dilation(lines, iterations=gap) if gap else lines
        found = _regions(closed)
        if found is not None:
            outer, inner = found
            return _shrink(outer, gap + half), ndimage.binary_dilation(inner, iterations=gap + max(half, 1))
    raise InputError("no two closed lines, one inside the other, are found. Draw them closed, or remove the file.")


def _regions(lines: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """What the outermost line encloses, itself included, and what an inner one does, itself left out."""
    filled, count = ndimage.label(ndimage.binary_fill_holes(lines))
    if not count:
        return None
    outer = filled == 1 + int(np.argmax(np.bincount(filled.reshape(-1))[1:]))
    inside, n_parts = ndimage.label(outer & ~lines)
    sizes = np.bincount(inside.reshape(-1), minlength=n_parts + 1)
    parts = [part for part in range(1, n_parts + 1) if sizes[part] > MIN_REGION_SHARE * outer.sum()]
    if len(parts) < 2:
        return None
    # The rim lies along the outer line; what does not is the inner region.
    depth = ndimage.distance_transform_edt(outer)
    border = depth <= np.percentile(depth[outer & (inside > 0)], 10)
    along = [int((border & (inside == part)).sum()) for part in parts]
    rim = parts[int(np.argmax(along))]
    inner = ndimage.binary_fill_holes(np.isin(inside, [part for part in parts if part != rim]))
    return outer, inner


def _shrink(region: np.ndarray, by: int) -> np.ndarray:
    return ndimage.binary_erosion(region, iterations=by) if by else region


def _without_specks(lines: np.ndarray) -> np.ndarray:
    """Lines without what is too small to be one, such as traces of compression."""
    parts, _ = ndimage.label(lines, structure=np.ones((3, 3)))
    sizes = np.bincount(parts.reshape(-1))
    sizes[0] = 0
    return (sizes >= MIN_LINE_PIXELS)[parts]
