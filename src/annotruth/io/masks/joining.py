"""Several files, or layers, as one mask; and masks of another size than their image's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from annotruth.errors import InputError

SEPARATORS = "_- ."


def join_layers(layers: Sequence[np.ndarray], numbers: Sequence[int]) -> np.ndarray:
    """Class numbers (*spatial) as uint8 from one bool array (*spatial) for each class; later ones lie on top.

    Examples
    --------
    >>> disc, cup = np.array([0, 1, 1, 1, 0], bool), np.array([0, 0, 1, 0, 0], bool)
    >>> join_layers([disc, cup], [1, 2])
    array([0, 1, 2, 1, 0], dtype=uint8)
    """
    joined = np.zeros(layers[0].shape, dtype=np.uint8)
    for layer, number in zip(layers, numbers):
        joined[layer] = number
    return joined


def split_class(name: str, cases: Sequence[str]) -> tuple[str, str] | None:
    """Case and class of a file name without suffix, ``<case>_<class>`` or ``<class>_<case>``; None for others.

    Of cases that fit, the longest name counts.

    Examples
    --------
    >>> split_class("case_12_tumour", ["case_1", "case_12"])
    ('case_12', 'tumour')
    >>> split_class("case_12", ["case_12"]) is None
    True
    """
    for case in sorted(cases, key=len, reverse=True):
        for rest, separator in ((name.removeprefix(case), 0), (name.removesuffix(case), -1)):
            if rest and rest != name and rest[separator] in SEPARATORS and rest.strip(SEPARATORS):
                return case, rest.strip(SEPARATORS)
    return None


def size_factor(shape: Sequence[int], wanted: Sequence[int]) -> int | None:
    """The whole number by which all axes of a mask must be multiplied, or divided (then negative), to fit an image.

    Examples
    --------
    >>> size_factor((64, 32), (128, 64)), size_factor((128, 64), (64, 32)), size_factor((64, 64), (128, 96))
    (2, -2, None)
    """
    if len(shape) != len(wanted) or not all(shape) or not all(wanted):
        return None
    for small, large, sign in ((shape, wanted, 1), (wanted, shape, -1)):
        factors = {big / little for little, big in zip(small, large)}
        if len(factors) == 1 and (factor := factors.pop()) == int(factor) and factor >= 1:
            return sign * int(factor)
    return None


def fit_size(mask: np.ndarray, shape: tuple[int, ...], where: str, resize: bool = False) -> np.ndarray:
    """Give a mask (*spatial) its image's size, where a whole number lies between the two and ``resize`` allows it.

    Pixels are repeated; in a mask that is larger than the image, the most frequent class of each block counts.

    Examples
    --------
    >>> fit_size(np.array([[0, 1]], dtype=np.uint8), (2, 4), "a.png", resize=True)
    array([[0, 0, 1, 1],
           [0, 0, 1, 1]], dtype=uint8)
    """
    if mask.shape == tuple(shape):
        return mask
    here, there = ("×".join(map(str, size)) for size in (mask.shape, shape))
    factor = size_factor(mask.shape, shape)
    if factor is None:
        raise InputError(
            f"{where}: the mask has size {here} but the image has {there}, and no whole number lies between them. "
            "Resample the mask to that grid."
        )
    if not resize:
        larger = f"{factor} times smaller" if factor > 0 else f"{-factor} times larger"
        raise InputError(
            f"{where}: the mask has size {here} but the image has {there}: it is {larger}. If the whole image is "
            "meant, allow it to be resized (--resize)."
        )
    if factor > 0:
        for axis in range(mask.ndim):
            mask = np.repeat(mask, factor, axis=axis)
        return mask
    return _most_frequent(mask, -factor)


def _most_frequent(mask: np.ndarray, factor: int) -> np.ndarray:
    """The most frequent value of blocks; of equally frequent ones the lowest."""
    split = [part for size in mask.shape for part in (size // factor, factor)]
    blocks = mask.reshape(split)
    within = tuple(range(1, 2 * mask.ndim, 2))
    values = np.unique(mask)
    counts = np.stack([(blocks == value).sum(axis=within) for value in values])
    return values[counts.argmax(axis=0)]
