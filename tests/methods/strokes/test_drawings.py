"""Everybody's strokes on an image, put together."""

from __future__ import annotations

import numpy as np

from annotruth import Annotations
from annotruth.methods.strokes.drawings import seeds


def test_seeds_join_everybodys_strokes():
    masks = np.full((1, 2, 1, 4), 255, dtype=np.uint8)
    negatives = masks.copy()
    masks[0, :, 0, 0], masks[0, 1, 0, 1], negatives[0, 0, 0, 1:3] = 1, 2, 2
    marked, said_not = seeds(Annotations.from_masks(masks, negatives=negatives, classes=3), 0)
    np.testing.assert_array_equal(marked, [[1, 2, 255, 255]])
    np.testing.assert_array_equal(said_not[2], [[False, False, True, False]])  # where it is marked, that counts
