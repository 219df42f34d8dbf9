"""Made-up masks and answers, the same for the same seed."""

from __future__ import annotations

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.data.answers import Answers

SEED = 0


def volumes(size: int, n_classes: int, n_raters: int = 5) -> np.ndarray:
    """Masks (raters, size, size, size) of nested balls, each rater erring in its own share of the voxels."""
    rng = np.random.default_rng(SEED)
    axis = np.arange(size, dtype=np.float32) - size / 2
    radius = np.sqrt(axis[:, None, None] ** 2 + axis[:, None] ** 2 + axis**2)
    edges = np.linspace(0.38, 0.15, n_classes - 1) * size
    truth = sum((radius < edge).astype(np.uint8) for edge in edges)
    masks = np.empty((n_raters, size, size, size), dtype=np.uint8)
    for rater in range(n_raters):
        wrong = rng.random(truth.shape, dtype=np.float32) < 0.04 + 0.03 * rater
        masks[rater] = np.where(wrong, rng.integers(0, n_classes, truth.shape, dtype=np.uint8), truth)
    return masks


def pictures(size: int, n_raters: int = 5) -> np.ndarray:
    """Masks (raters, size, size) of a disc."""
    rng = np.random.default_rng(SEED)
    axis = np.arange(size) - size / 2
    truth = (np.hypot(axis[:, None], axis) < 0.3 * size).astype(np.uint8)
    wrong = rng.random((n_raters, size, size)) < 0.05 + 0.04 * np.arange(n_raters)[:, None, None]
    return np.where(wrong, 1 - truth, truth).astype(np.uint8)


def answers(n_answers: int, n_workers: int, n_classes: int, per_item: int) -> tuple[Answers, np.ndarray]:
    """Answers of workers of differing skill, ``per_item`` different workers for each item, and the truth (items,)."""
    rng = np.random.default_rng(SEED)
    n_items = n_answers // per_item
    truth = rng.integers(0, n_classes, n_items, dtype=np.int16)
    item = np.repeat(np.arange(n_items, dtype=np.int32), per_item)
    first, stride = rng.integers(0, n_workers, n_items, dtype=np.int32), np.int32(n_workers // per_item)
    worker = (first[:, None] + stride * np.arange(per_item, dtype=np.int32)) % np.int32(n_workers)
    worker = np.sort(worker, axis=1).ravel()
    skill = rng.uniform(0.4, 0.95, n_workers).astype(np.float32)
    label = truth[item]
    wrong = np.flatnonzero(rng.random(len(item), dtype=np.float32) > skill[worker])
    label[wrong] = rng.integers(0, n_classes, len(wrong), dtype=np.int16)
    return Answers(item, worker, label), truth


def table(found: Answers, n_items: int, n_workers: int, n_classes: int) -> Annotations:
    """Give answers names, without the cost of a table of strings."""
    return Annotations(
        kind="labels",
        items=[str(number) for number in range(n_items)],
        raters=[str(number) for number in range(n_workers)],
        classes=[str(number) for number in range(n_classes)],
        answers=found,
    )
