"""True masks of some items, to learn from beside what raters drew."""

from __future__ import annotations

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.fusion.gold import Gold, GoldMasks
from annotruth.validation import MISSING_PIXEL


def with_known(annotations: Annotations, truth: Gold) -> Annotations:
    """Annotations that carry these true masks and no others.

    Examples
    --------
    >>> annotations = Annotations.from_masks(np.zeros((2, 1, 2, 2), dtype=np.uint8))
    >>> with_known(annotations, {"item_1": [[0, 1], [0, 0]]}).truth.tolist()
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
