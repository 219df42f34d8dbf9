"""One file as a mask or an image, whatever its format: its size and place, its pixels, and what their values mean.

What goes wrong names the file, the case and the rater.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from annotruth.data.drawings import NEGATIVE_FOLDER, drop_contradictions, warn_contradictions
from annotruth.errors import InputError, shorten
from annotruth.io.formats import FORMATS, SUFFIXES, Format
from annotruth.io.formats.header import Header
from annotruth.io.kept import read_once
from annotruth.io.problems import place
from annotruth.validation import MISSING_PIXEL, finite_image, mask_labels, same_grid, whole_numbers

DATASET_FILE = "dataset.json"
"""Where a case folder says what its files cannot say themselves."""
GRID_TOLERANCE = 1e-3
"""How far entries of two affines may lie apart: writers round differently."""
_NO_CLASS = 254
_FORMATS = {suffix: format for format in FORMATS for suffix in format.SUFFIXES}


def suffix_of(path: str | Path) -> str | None:
    """Give the known suffix a file name ends with, in the file's own spelling, or None.

    Examples
    --------
    >>> suffix_of("cases/images/case.1.NII.gz")
    '.NII.gz'
    """
    return _suffix_of_name(os.path.basename(path))  # of thousands of files, quicker than by a Path


@lru_cache(maxsize=2**16)
def _suffix_of_name(name: str) -> str | None:
    lowered = name.lower()
    lengths = [len(suffix) for suffix in SUFFIXES if lowered.endswith(suffix) and len(name) > len(suffix)]
    return name[-max(lengths) :] if lengths else None


def format_of(path: str | Path) -> Format:
    """Give the format of a file whose suffix is known."""
    return _FORMATS[(suffix_of(path) or "").lower()]


def case_of(path: str | Path) -> str:
    """Give the name of the case a file belongs to: its name without the suffix."""
    path = Path(path)
    return path.name.removesuffix(suffix_of(path) or "")


def mask_header(path: Path, where: str) -> Header:
    """Give a mask's size (*spatial) and geometry; only the file's head is read."""
    with reading(where):
        header = format_of(path).mask_header(path)
        _refuse_odd_shapes(header.shape, header.shape)
    return header


def image_header(path: Path, rank: int, where: str) -> Header:
    """Give an image's size (channels, *spatial) and geometry; only the file's head is read."""
    with reading(where):
        header = format_of(path).image_header(path, rank)
        _refuse_odd_shapes(header.shape[1:], header.shape)
    return header


def read_mask(path: Path, where: str) -> np.ndarray:
    """Read a mask's pixel values (*spatial) as integers."""
    with reading(where):
        pixels = read_once(path, format_of(path).read_mask)
    return whole_numbers(pixels, where)


def read_image(path: Path, rank: int, where: str) -> np.ndarray:
    """Read an image (channels, *spatial) as finite float32."""
    with reading(where):
        pixels = format_of(path).read_image(path, rank)
    return finite_image(pixels, where)


def same_place(mask: Header, reference: Header, name: str, where: str) -> None:
    """Refuse a mask whose size or place in space differs from the reference's.

    Parameters
    ----------
    mask, reference : headers with shape (*spatial); geometry is compared where both have one
    name : what the reference is, for the message ("the image")

    Examples
    --------
    >>> here, there = Header((4, 4, 4), np.eye(4)), Header((4, 4, 4), np.diag([1.0, 1.0, 3.0, 1.0]))
    >>> same_place(there, here, "the image", "a.nii")
    Traceback (most recent call last):
    annotruth.errors.InputError: a.nii: the mask does not lie where the image lies: spacing along axis 3 is 3 mm \
instead of 1 mm. Resample the mask to that grid, or correct its header.
    """
    same_grid(mask.shape, reference.shape, where, name)
    if mask.affine is None or reference.affine is None:
        return
    if not np.all(np.abs(mask.affine - reference.affine) <= GRID_TOLERANCE):
        differences = "; ".join(_differences(mask.affine, reference.affine))
        raise InputError(
            f"{where}: the mask does not lie where {name} lies: {differences}. "
            "Resample the mask to that grid, or correct its header."
        )


@dataclass(frozen=True)
class Pixels:
    """The meaning of a case folder's pixel values.

    Attributes
    ----------
    classes : names
    values : the pixel value of each class
    missing : the pixel value meaning "not labelled", or None
    negative : (class number, pixel value) of values that mean "not this class"
    """

    classes: tuple[str, ...]
    values: tuple[int, ...]
    missing: int | None
    negative: tuple[tuple[int, int], ...] = ()

    @property
    def by_class(self) -> dict[int, int] | None:
        """Pixel value by class number (255: not labelled), or None where files hold the class numbers themselves."""
        if self.values == tuple(range(len(self.values))) and self.missing == MISSING_PIXEL:
            return None
        missing = {} if self.missing is None else {MISSING_PIXEL: self.missing}
        return dict(enumerate(self.values)) | missing

    def class_numbers(self, array: np.ndarray, where: str) -> np.ndarray:
        """Turn pixel values of any shape into class numbers as uint8, 255 = not labelled.

        Examples
        --------
        >>> Pixels(("background", "lesion"), (0, 255), None).class_numbers(np.array([[0, 255]]), "a.png")
        array([[0, 1]], dtype=uint8)
        """
        if not self.negative:
            return self._numbers(array, where)
        said_not = np.isin(array, [value for _, value in self.negative])
        numbers = self._numbers(np.where(said_not, self.values[0], array), where)
        return np.where(said_not, np.uint8(MISSING_PIXEL), numbers)

    def _numbers(self, array: np.ndarray, where: str) -> np.ndarray:
        by_class = self.by_class
        if by_class is None:
            return mask_labels(array, len(self.classes), where)
        array = whole_numbers(array, where)
        values = np.array(list(by_class.values()))
        lowest, highest = min(values.min() - 1, 0), max(values.max() + 1, 255)
        table = np.full(highest - lowest + 1, _NO_CLASS, dtype=np.uint8)
        table[values - lowest] = list(by_class)
        if array.dtype == np.uint8:  # whose values are all in the table, and stay narrow
            labels = table[-lowest:][array]
        else:
            labels = table[np.clip(array, lowest, highest).astype(np.int64) - lowest]
        wrong = labels == _NO_CLASS
        if wrong.any():
            known = [f"{name} = {value}" for name, value in zip(self.classes, self.values)]
            known += [] if self.missing is None else [f"not labelled = {self.missing}"]
            raise InputError(
                f"{where}: pixel value {shorten(np.unique(array[wrong]).tolist())} means nothing here "
                f"({shorten(known, 10)}). Correct the mask, or give the value a class in {DATASET_FILE}."
            )
        return labels

    def negative_numbers(self, array: np.ndarray, where: str) -> np.ndarray:
        """The class that each pixel is said not to belong to, as uint8; 255 = nothing of the kind is said.

        Examples
        --------
        >>> pixels = Pixels(("background", "lesion"), (0, 1), 255, negative=((1, 101),))
        >>> array = np.array([0, 1, 101])
        >>> pixels.negative_numbers(array, "a.png"), pixels.class_numbers(array, "a.png")
        (array([255, 255,   1], dtype=uint8), array([  0,   1, 255], dtype=uint8))
        """
        array = whole_numbers(array, where)
        numbers = np.full(array.shape, MISSING_PIXEL, dtype=np.uint8)
        for number, value in self.negative:
            numbers[array == value] = number
        return numbers


def pixel_values(labels: np.ndarray, by_class: Mapping[int, int] | None, where: str) -> np.ndarray:
    """Turn class numbers (uint8, 255 = not labelled) back into a file's own values, in the smallest type for them.

    Examples
    --------
    >>> pixel_values(np.array([0, 1], dtype=np.uint8), {0: 0, 1: 1000}, "a.png")
    array([   0, 1000], dtype=uint16)
    """
    if by_class is None:
        return labels
    if MISSING_PIXEL not in by_class and (labels == MISSING_PIXEL).any():
        raise InputError(
            f"{where}: some pixels have no label, and {DATASET_FILE} gives no value for that. "
            f'Name one there, as in "missing": 254.'
        )
    table = np.zeros(256, dtype=np.int64)
    table[list(by_class)] = list(by_class.values())
    smallest = np.result_type(np.min_scalar_type(table.min()), np.min_scalar_type(table.max()))
    return table.astype(smallest)[labels]


@dataclass(frozen=True)
class CaseMasks:
    """What the raters drew on one case: masks, and coarse drawings of what is there and what is not.

    Files are read when they are asked for.

    Attributes
    ----------
    files : each rater's mask, or positive drawing; None = not labelled
    negative_files : each rater's negative drawing
    """

    case: str
    raters: tuple[str, ...]
    files: tuple[Path | None, ...]
    negative_files: tuple[Path | None, ...]
    shape: tuple[int, ...]
    pixels: Pixels

    def read_positive(self) -> np.ndarray:
        """What was drawn as being there (raters, *spatial), 255 = not labelled."""
        return self._positive() if not self._has_negative else self.read_both()[0]

    def read_negative(self) -> np.ndarray:
        """What was drawn as not being there (raters, *spatial), 255 = nothing said; warns of what is contradicted."""
        _, negative, contradicted = self.read_both()
        if contradicted:
            warn_contradictions([f"case {self.case}"], contradicted)
        return negative

    def read_both(self) -> tuple[np.ndarray, np.ndarray, int]:
        """Positive and negative drawings without the pixels that are contradicted, and how many these were."""
        return drop_contradictions(self._positive(), self._negative())

    @property
    def _has_negative(self) -> bool:
        return bool(self.pixels.negative) or any(path is not None for path in self.negative_files)

    def _positive(self) -> np.ndarray:
        pairs = zip(self.files, self.raters)
        return _stack([read_case_mask(path, rater, self.case, self.shape, self.pixels) for path, rater in pairs])

    def _negative(self) -> np.ndarray:
        drawn = []
        for path, also, rater in zip(self.negative_files, self.files, self.raters):
            mask = read_case_mask(path, f"{rater}{NEGATIVE_FOLDER}", self.case, self.shape, self.pixels)
            if also is not None and self.pixels.negative:
                where = place(also, self.case, rater)
                mask = np.where(
                    mask == MISSING_PIXEL, self.pixels.negative_numbers(read_mask(also, where), where), mask
                )
            drawn.append(mask)
        return np.stack(drawn)


def _stack(masks: Sequence[np.ndarray]) -> np.ndarray:
    """Stack masks (*spatial), with the axis that runs fastest in memory left so: turning takes longer than reading."""
    if masks[0].ndim < 2 or not any(mask.flags.f_contiguous and not mask.flags.c_contiguous for mask in masks):
        return np.stack(masks)
    return reverse_axes(np.stack([mask.T for mask in masks]))


def reverse_axes(array: np.ndarray) -> np.ndarray:
    """A view with all axes but the first in reverse order.

    Examples
    --------
    >>> reverse_axes(np.zeros((2, 3, 4, 5))).shape
    (2, 5, 4, 3)
    """
    return array.transpose(0, *range(array.ndim - 1, 0, -1))


def read_case_mask(
    path: Path | None, rater: str | None, case: str, shape: tuple[int, ...], pixels: Pixels
) -> np.ndarray:
    """Read one mask (*spatial); without a file nothing is labelled."""
    if path is None:
        return np.full(shape, MISSING_PIXEL, dtype=np.uint8)
    where = place(path, case, rater)
    array = read_mask(path, where)
    same_grid(array.shape, shape, where, "the case, when it was loaded,")
    return pixels.class_numbers(array, where)


def _refuse_odd_shapes(spatial: tuple[int, ...], shape: tuple[int, ...]) -> None:
    size = "×".join(map(str, shape))
    if len(spatial) not in (2, 3):
        raise InputError(f"the file has {len(spatial)} spatial axes ({size}). Masks have two or three.")
    if 0 in shape:
        raise InputError(f"the file holds no pixel ({size}). Replace it.")


@contextmanager
def reading(where: str) -> Iterator[None]:
    """Name the file in whatever goes wrong inside."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    except (FileNotFoundError, PermissionError) as error:
        raise InputError(f"{where}: cannot be opened: {error.strerror}. Restore the file.") from error
    except MemoryError as error:
        raise InputError(f"{where}: needs more memory than there is. Is the file damaged, or simply large?") from error
    except Exception as error:  # a damaged file can raise anything inside its parser
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"{where}: cannot be read ({reason}). The file is damaged, or not what its suffix says; replace it."
        ) from error


def _differences(ours: np.ndarray, theirs: np.ndarray) -> list[str]:
    if not (np.isfinite(ours).all() and np.isfinite(theirs).all()):
        return ["one of the affines is not finite"]
    from nibabel.orientations import aff2axcodes

    found = []
    spacing, wanted = (np.linalg.norm(affine[:3, :3], axis=0) for affine in (ours, theirs))
    for axis in np.flatnonzero(np.abs(spacing - wanted) > GRID_TOLERANCE):
        found.append(f"spacing along axis {axis + 1} is {spacing[axis]:.6g} mm instead of {wanted[axis]:.6g} mm")
    letters, expected = ("".join(code or "?" for code in aff2axcodes(affine)) for affine in (ours, theirs))
    if letters != expected:
        found.append(f"orientation is {letters} instead of {expected}")
    else:
        with np.errstate(invalid="ignore", divide="ignore"):
            cosine = np.sum(ours[:3, :3] * theirs[:3, :3], axis=0) / (spacing * wanted)
        angles = np.degrees(np.arccos(np.clip(cosine, -1, 1)))
        for axis in np.flatnonzero(angles > np.degrees(GRID_TOLERANCE)):
            found.append(f"axis {axis + 1} is turned by {angles[axis]:.3g}°")
    if np.any(np.abs(ours[:3, 3] - theirs[:3, 3]) > GRID_TOLERANCE):
        apart = np.linalg.norm(ours[:3, 3] - theirs[:3, 3])
        found.append(f"origin is {_point(ours)} instead of {_point(theirs)}, {apart:.4g} mm apart")
    return found or [f"the affines differ by up to {np.max(np.abs(ours - theirs)):.3g}"]


def _point(affine: np.ndarray) -> str:
    return "(" + ", ".join(f"{coordinate:.6g}" for coordinate in affine[:3, 3]) + ")"
