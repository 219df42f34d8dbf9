"""What an estimator is given, in the forms in which people have it, brought to annotations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from annotruth.data.annotations import Annotations
from annotruth.data.answers import class_name, sort_answers
from annotruth.errors import InputError
from annotruth.fusion.gold import Gold, GoldMasks
from annotruth.training.resample import Spacings
from annotruth.validation import MISSING_LABEL, MISSING_PIXEL

Images = np.ndarray | Sequence[np.ndarray] | Annotations
"""Images (channels, *spatial), or annotations that carry them and their spacing."""


def images_and_spacing(images: Images, spacing: Spacings) -> tuple[np.ndarray | Sequence[np.ndarray], Spacings]:
    """Images and their spacing, taken from annotations that carry them."""
    if not isinstance(images, Annotations):
        return images, spacing
    every = range(len(images))
    own = [images.spacing(index) for index in every]
    return [images.item_image(index) for index in every], own if spacing is None else spacing


def to_annotations(items: np.ndarray, names: list[str], answers: Any) -> tuple[Annotations, np.ndarray]:
    """Join items with their answers; give annotations and the classes' labels as the user wrote them.

    Parameters
    ----------
    items : (items, features), or (items, channels, *spatial)
    names : the items' names
    answers : labels (items, raters), -1 or nothing (None, nan) = not answered; labels (items,), as of one rater;
        annotations of a label table; or a long table with the columns item, rater, label

    Examples
    --------
    >>> annotations, labels = to_annotations(np.zeros((2, 3)), ["a", "b"], np.array([[4, 9], [-1, 9]]))
    >>> annotations, labels
    (Annotations(labels: 2 items, 2 raters, 2 classes, 3 answers), array([4, 9]))
    """
    if isinstance(answers, pd.DataFrame) and {"item", "rater", "label"} <= set(answers.columns):
        answers = Annotations.from_table(answers, items=names)
    if isinstance(answers, Annotations):
        return _with_items(answers, items), np.array(answers.classes)
    values = np.asarray(answers)
    if values.ndim == 2 and values.shape[1] != 1:
        missing = pd.isna(values)
        if not np.issubdtype(values.dtype, np.str_):
            missing |= values == MISSING_LABEL
    else:
        values = column_or_1d(values, warn=True)
        check_classification_targets(values)
        values = values[:, None]
        missing = np.zeros(values.shape, dtype=bool)  # here -1 is a class like any other
    if len(values) != len(items):
        raise InputError(f"{len(items)} items but answers on {len(values)}: there must be one row each.")
    item, rater = np.nonzero(~missing)
    if len(item) == 0:
        raise InputError("There is no answer to learn from: all of them are missing.")
    labels, number = np.unique(values[item, rater], return_inverse=True)
    made = Annotations(
        kind="labels", items=names, raters=[f"rater_{r + 1}" for r in range(values.shape[1])],
        classes=[class_name(label) for label in labels], answers=sort_answers(item, rater, number), images=items,
    )  # fmt: skip
    return made, labels


def _with_items(annotations: Annotations, items: np.ndarray) -> Annotations:
    """Put images or features to a label table that has none."""
    if len(annotations) != len(items):
        raise InputError(f"{len(items)} items but a label table of {len(annotations)}: there must be one row each.")
    return annotations.with_images(items)


def with_known_truth(annotations: Annotations, truth: Gold) -> Annotations:
    """Annotations that carry these true masks and no others.

    Examples
    --------
    >>> annotations = Annotations.from_masks(np.zeros((2, 1, 2, 2), dtype=np.uint8))
    >>> with_known_truth(annotations, {"item_1": [[0, 1], [0, 0]]}).truth.tolist()
    [[[255, 255], [255, 255]], [[0, 1], [0, 0]]]
    """
    if annotations.kind != "masks":
        raise InputError("truth= takes masks; these annotations are a label table.")
    gold = GoldMasks(annotations, truth)
    masks = [gold.read(index) for index in range(len(annotations))]
    unknown = [np.full(annotations.shape(index), MISSING_PIXEL, dtype=np.uint8) for index in range(len(annotations))]
    known = [mask if mask is not None else nothing for mask, nothing in zip(masks, unknown)]
    if not any((mask != MISSING_PIXEL).any() for mask in known):
        raise InputError("truth= holds no known pixel; leave it out, or give true masks of some items.")
    return annotations.with_truth(known)
