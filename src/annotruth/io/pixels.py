"""What pixel values mean: from a file's own values to class numbers and back."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from annotruth.errors import InputError, shorten
from annotruth.io.dataset import FILE_NAME, Dataset
from annotruth.validation import MAX_MASK_CLASSES, MISSING_PIXEL, mask_labels, whole_numbers

_UNKNOWN = 254


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
        array = whole_numbers(array, where).astype(np.int64, copy=False)
        lowest, highest = min(by_class.values()) - 1, max(by_class.values()) + 1
        table = np.full(highest - lowest + 1, _UNKNOWN, dtype=np.uint8)
        table[np.array(list(by_class.values())) - lowest] = list(by_class)
        labels = table[np.clip(array, lowest, highest) - lowest]
        wrong = labels == _UNKNOWN
        if wrong.any():
            known = [f"{name} = {value}" for name, value in zip(self.classes, self.values)]
            known += [] if self.missing is None else [f"not labelled = {self.missing}"]
            raise InputError(
                f"{where}: pixel value {shorten(np.unique(array[wrong]).tolist())} means nothing here "
                f"({shorten(known, 10)}). Correct the mask, or give the value a class in {FILE_NAME}."
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


def settle_classes(dataset: Dataset, seen: Collection[int]) -> Pixels:
    """Take the classes from ``dataset.json``, or from the values seen in all masks: 0 to the highest, at least two."""
    if dataset.class_names is not None and dataset.class_values is not None:
        negative = tuple((dataset.class_names.index(name), value) for name, value in dataset.negative.items())
        return Pixels(dataset.class_names, dataset.class_values, dataset.missing, negative)
    highest = max((value for value in seen if value < MAX_MASK_CLASSES and value != dataset.missing), default=0)
    numbers = tuple(range(max(highest + 1, 2)))
    return Pixels(tuple(map(str, numbers)), numbers, dataset.missing)


def refuse_unnamed_value(dataset: Dataset, seen: Collection[int], folder: Path) -> None:
    """Refuse masks whose one mark is no class number: binary masks stored as 0 and 255, mostly.

    Read as they stand, 255 would mean "not labelled", and nobody would ever have marked anything.
    """
    marks = sorted(set(seen) - {0})
    if dataset.explains_pixels or len(marks) != 1 or marks[0] < 2:
        return
    mark = marks[0]
    if dataset.classes is not None and mark != MISSING_PIXEL:
        return
    names = dataset.class_names if dataset.class_names and len(dataset.class_names) == 2 else ("background", "marked")
    line = json.dumps({"classes": {names[0]: 0, names[1]: mark}}, ensure_ascii=False)
    if mark == MISSING_PIXEL:
        trouble = f"the masks hold only 0 and {mark}, and {mark} means 'not labelled' unless {FILE_NAME} says otherwise"
        otherwise = f' If {mark} does mean not labelled: {{"missing": {mark}}}.'
    else:
        trouble, otherwise = f"the masks hold only 0 and {mark}, but classes count 0, 1, 2 …", ""
    raise InputError(f"{folder}: {trouble}. If {mark} marks a class, write into {FILE_NAME}: {line}.{otherwise}")


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
            f"{where}: some pixels have no label, and {FILE_NAME} gives no value for that. "
            f'Name one there, as in "missing": 254.'
        )
    table = np.zeros(256, dtype=np.int64)
    table[list(by_class)] = list(by_class.values())
    smallest = np.result_type(np.min_scalar_type(table.min()), np.min_scalar_type(table.max()))
    return table.astype(smallest)[labels]
