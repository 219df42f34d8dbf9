"""Masks for tests of models of masks, and what these must refuse."""

from __future__ import annotations

import numpy as np
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.fusion.base import FusionEstimator


def shifted_masks(n_classes: int = 2, shape: tuple[int, ...] = (24, 20), seed: int = 0) -> np.ndarray:
    """Masks (4 raters, *shape): nested boxes, moved and sprinkled with errors; the last rater left out some pixels."""
    rng = np.random.default_rng(seed)
    depth = np.min([np.minimum(g, n - 1 - g) for g, n in zip(np.indices(shape), shape)], axis=0)
    truth = np.minimum(depth // 3, n_classes - 1).astype(np.uint8)
    masks = np.stack([np.roll(truth, shift, axis=(0, 1)) for shift in ((0, 0), (0, 1), (1, 0), (-1, 2))])
    wrong = rng.random(masks.shape) < 0.08
    masks[wrong] = rng.integers(0, n_classes, int(wrong.sum()))
    masks[3, :2] = 255
    return masks


def image_of(masks: np.ndarray, seed: int = 0) -> np.ndarray:
    """An image (1, *shape) that shows what the first rater drew, with noise."""
    return (masks[0] + np.random.default_rng(seed).normal(0, 0.3, masks.shape[1:]))[None].astype(np.float32)


def assert_refuses_tables_and_single_raters(estimator: FusionEstimator, instead: str) -> None:
    with pytest.raises(InputError, match=f"needs masks; for a label table use {instead}"):
        estimator.fit(at.Annotations.from_answers(np.zeros((3, 3), dtype=int)))
    alone = at.Annotations.from_masks(np.zeros((1, 1, 8, 8), np.uint8), np.zeros((1, 1, 8, 8)), raters=["ann"])
    with pytest.raises(InputError, match="there is one, ann"):
        estimator.fit(alone)
