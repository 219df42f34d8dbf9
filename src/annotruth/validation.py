"""The rules that labels and images must keep, each in one place, with messages naming item and rater."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches

import numpy as np

from annotruth.errors import InputError, shorten

MISSING_PIXEL = 255
"""In a mask: this rater did not label this pixel (or this item)."""
MISSING_LABEL = -1
"""In a label table: this rater did not label this item."""
MAX_MASK_CLASSES = 254
_BLOCK = 2**18


def whole_numbers(array: np.ndarray, where: str) -> np.ndarray:
    """Give labels as integers; floats pass only if each is a whole number.

    Parameters
    ----------
    array : labels of any shape
    where : whose labels they are, for the message
    """
    array = np.asarray(array)
    if array.dtype == bool:
        return array.astype(np.uint8)
    if np.issubdtype(array.dtype, np.integer):
        return array
    if not np.issubdtype(array.dtype, np.floating):
        raise InputError(f"{where}: labels must be numbers, found {array.dtype}.")
    if not np.isfinite(array).all():
        raise InputError(
            f"{where}: the mask holds NaN or infinite values; write unlabelled pixels as {MISSING_PIXEL} instead."
        )
    whole = np.rint(array)
    if not np.array_equal(whole, array):
        example = array[whole != array].flat[0]
        raise InputError(f"{where}: labels must be whole numbers, found {example:g}; is this a probability map?")
    return whole.astype(np.int64)


def mask_labels(array: np.ndarray, n_classes: int | None, where: str) -> np.ndarray:
    """Check one mask and give it as uint8: labels 0 … n_classes - 1, or 255 for unlabelled pixels."""
    array = whole_numbers(array, where)
    limit = MAX_MASK_CLASSES if n_classes is None else n_classes
    if array.dtype == np.uint8 and highest_label(array) < limit:  # as most are, told in one pass
        return array
    wrong = (array < 0) | ((array >= limit) & (array != MISSING_PIXEL))
    if wrong.any():
        values = np.unique(array[wrong]).tolist()
        known = f"0 to {limit - 1}" if n_classes is not None else f"0 to {MAX_MASK_CLASSES - 1} at most"
        raise InputError(
            f"{where}: label {shorten(values)} lies outside the classes ({known}; {MISSING_PIXEL} = unlabelled). "
            "Correct the mask, or name the classes and their values in dataset.json."
        )
    return array.astype(np.uint8, copy=False)


def strange_labels(array: np.ndarray, n_classes: int) -> bool:
    """Whether any label of uint8 masks lies outside the classes: the cheap test before the one that finds the culprit.

    Examples
    --------
    >>> strange_labels(np.array([0, 1, 255], dtype=np.uint8), n_classes=2)
    False
    """
    return highest_label(array) >= n_classes


def highest_label(array: np.ndarray) -> int:
    """The highest label of uint8 masks, 255 not being one; -1 where nothing is labelled. One pass over the memory.

    Examples
    --------
    >>> highest_label(np.array([0, 3, 255], dtype=np.uint8)), highest_label(np.array([255], dtype=np.uint8))
    (3, -1)
    """
    flat, highest = array.ravel(order="K"), -1  # as it lies in memory
    for first in range(0, len(flat), _BLOCK):  # which stays in the cache where it is looked at twice
        block = flat[first : first + _BLOCK]
        top = int(block.max())
        if top == MISSING_PIXEL:
            top = int((block + np.uint8(1)).max()) - 1  # 255 + 1 is 0 here
        highest = max(highest, top)
    return highest


def finite_image(array: np.ndarray, where: str) -> np.ndarray:
    """Give an image, or a feature vector, as float32, refusing NaN, infinities and what is no real number."""
    array = np.asarray(array)
    if array.dtype.kind not in "biuf":
        raise InputError(f"{where}: the image holds {array.dtype} values. Save it with real numbers.")
    with np.errstate(over="ignore"):
        array = array.astype(np.float32, copy=False)
    bad = array.size - int(np.isfinite(array).sum())
    if bad and array.ndim == 1:
        columns = shorten([str(column) for column in np.flatnonzero(~np.isfinite(array))])
        raise InputError(
            f"{where}: column {columns} of its features (counted from 0) is NaN or infinity; fill it in, or remove "
            "the item."
        )
    if bad:
        raise InputError(f"{where}: the image holds {bad} non-finite values (NaN or infinity); repair or remove it.")
    return array


def same_grid(
    mask_shape: tuple[int, ...], image_shape: tuple[int, ...], where: str, reference: str = "the image"
) -> None:
    """Refuse a mask whose size differs from its image's, or from that of another ``reference``."""
    if tuple(mask_shape) != tuple(image_shape):
        raise InputError(
            f"{where}: the mask has size {_size(mask_shape)} but {reference} has {_size(image_shape)}. "
            "Resample the mask to that grid."
        )


def voxel_spacing(spacing: Sequence[float], rank: int, where: str) -> tuple[float, ...]:
    """Give the millimetres from pixel to pixel as floats: one for each of ``rank`` spatial axes, positive and finite.

    Examples
    --------
    >>> voxel_spacing([1, 1, 2.5], rank=3, where="Item a")
    (1.0, 1.0, 2.5)
    """
    try:
        found = tuple(float(step) for step in spacing)
    except (TypeError, ValueError):
        raise InputError(f"{where}: the spacing is one number of mm per spatial axis, not {spacing!r}.") from None
    if len(found) != rank:
        raise InputError(
            f"{where}: the spacing {found} has {len(found)} numbers, but there are {rank} spatial axes. "
            "Give one for each."
        )
    if not all(np.isfinite(step) and step > 0 for step in found):
        raise InputError(f"{where}: the spacing {found} must be positive and finite, in mm.")
    return found


def unique_names(names: Sequence[str], what: str) -> tuple[str, ...]:
    """Give names as a tuple of distinct strings."""
    names = tuple(map(str, names))
    if len(set(names)) != len(names):
        twice = sorted(name for name, count in Counter(names).items() if count > 1)
        raise InputError(f"Each {what} needs a name of its own; named twice: {shorten(twice)}.")
    return names


def one_of(value: str, known: Sequence[str], what: str) -> str:
    """Refuse an unknown name, listing the known ones, and the one that may be meant.

    Examples
    --------
    >>> one_of("pixelcm", ["majority", "pixel-cm"], "method")
    Traceback (most recent call last):
        ...
    annotruth.errors.InputError: Unknown method 'pixelcm'. Did you mean 'pixel-cm'? Known: majority, pixel-cm.
    """
    if value not in known:
        close = get_close_matches(str(value), map(str, known), n=1, cutoff=0.8)
        meant = f" Did you mean {close[0]!r}?" if close else ""
        raise InputError(f"Unknown {what} {value!r}.{meant} Known: {', '.join(known)}.")
    return value


def _size(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape))
