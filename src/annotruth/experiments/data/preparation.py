"""What data sets of experiments share: reading archives, splitting by group, halving, tiling and standardising."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError


def read_arrays(folder: Path, file: str, names: Sequence[str], source: str) -> dict[str, np.ndarray]:
    """Read the named arrays of ``folder/file``, an ``.npz`` archive, or say what must lie there.

    Parameters
    ----------
    source : where the data can be had, in words
    """
    path = folder / file
    wanted = f"the arrays {', '.join(names)}. {source}"
    if not path.is_file():
        raise InputError(f"{folder}: there is no file {file}. It must hold {wanted}")
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in names}
    except (KeyError, OSError, ValueError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} cannot be used ({error}). It must hold {wanted}") from error


def split_groups(
    cases: Annotations, share: float, most: tuple[int, int], seed: int, rng: np.random.Generator
) -> tuple[Annotations, Annotations]:
    """Cases to learn from and cases of other groups to score on, so many at most, picked at random.

    Parameters
    ----------
    share : of the cases, how many to learn from; groups (patients, pictures) are never torn apart

    Examples
    --------
    >>> masks = np.zeros((8, 1, 2, 2), np.uint8)
    >>> cases = Annotations.from_masks(masks, classes=2, groups=["ann", "ann", "bob", "bob", "cy", "cy", "di", "di"])
    >>> seen, held_out = split_groups(cases, 0.5, (4, 1), seed=0, rng=np.random.default_rng(0))
    >>> len(seen), len(held_out), set(seen.groups) & set(held_out.groups)
    (4, 1, set())
    """
    parts = cases.split([share, 1 - share], seed=seed)
    seen, held_out = (part.take(np.sort(rng.permutation(len(part))[:n])) for part, n in zip(parts, most))
    return seen, held_out


def halve(pictures: np.ndarray) -> np.ndarray:
    """Pictures (..., height, width) of half the height and width: means of two by two pixels.

    Examples
    --------
    >>> halve(np.arange(16.0).reshape(1, 4, 4))[0]
    array([[ 2.5,  4.5],
           [10.5, 12.5]])
    """
    *rest, height, width = pictures.shape
    blocks = pictures.reshape(*rest, height // 2, 2, width // 2, 2)
    return blocks.mean(axis=(-3, -1), dtype=pictures.dtype)


def halve_labels(labels: np.ndarray, missing: int | None = None) -> np.ndarray:
    """Every second pixel of labels (items, height, width); or the first of four that is not missing.

    Examples
    --------
    >>> halve_labels(np.array([[[255, 255, 1, 2], [255, 3, 255, 255]]]), missing=255)
    array([[[3, 1]]])
    """
    corners = [labels[:, y::2, x::2] for y in (0, 1) for x in (0, 1)]
    kept = corners[0]
    for corner in corners[1:] if missing is not None else ():
        kept = np.where(kept == missing, corner, kept)
    return kept


def standardise(pictures: np.ndarray) -> np.ndarray:
    """Pictures (items, height, width), each with mean 0 and deviation 1: scanners and lamps differ.

    Examples
    --------
    >>> standardise(np.array([[[0, 2]], [[100, 300]]]))
    array([[[-1.,  1.]],
    <BLANKLINE>
           [[-1.,  1.]]], dtype=float32)
    """
    pictures = pictures.astype(np.float32)
    centred = pictures - pictures.mean(axis=(1, 2), keepdims=True)
    spread = centred.std(axis=(1, 2), keepdims=True)
    return centred / np.where(spread > 0, spread, 1)


def cut_tiles(pictures: np.ndarray, side: int) -> np.ndarray:
    """Cut pictures (items, ..., height, width) into tiles (tiles, ..., side, side), those of a picture together.

    Examples
    --------
    >>> cut_tiles(np.arange(16).reshape(1, 4, 4), side=2)[1]
    array([[2, 3],
           [6, 7]])
    """
    rows, columns = pictures.shape[-2] // side, pictures.shape[-1] // side
    cut = pictures[..., : rows * side, : columns * side].reshape(*pictures.shape[:-2], rows, side, columns, side)
    return np.moveaxis(cut, (-4, -2), (1, 2)).reshape(-1, *pictures.shape[1:-2], side, side)
