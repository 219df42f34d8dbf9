"""Pictures or features with simulated raters who give class labels: what the experiments on label tables share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.experiments.core.task import TaskData
from annotruth.simulate import simulate_labels

Keep = int | Literal["all"]
Pictures = tuple[np.ndarray, np.ndarray]
"""Images (items, channels, *spatial) or features (items, features), and true class numbers (items,)."""


def simulated_task(
    seen: Pictures,
    unseen: Pictures,
    raters: np.ndarray | Mapping[str, np.ndarray],
    classes: Sequence[str],
    *,
    keep: Keep,
    seed: int,
    about: str,
) -> TaskData:
    """Let raters with these matrices label what is seen; what is unseen is scored against its truth."""
    images, truth = seen
    simulation = simulate_labels(truth, raters, keep=keep, seed=seed)
    return TaskData(
        train=simulation.annotations(images=images, classes=classes),
        held_out=unlabelled(unseen, classes),
        confusion=simulation.confusion,
        about=about,
    )


def unlabelled(pictures: Pictures, classes: Sequence[str]) -> Annotations:
    """Items with their truth, which nobody labelled.

    Examples
    --------
    >>> unlabelled((np.zeros((3, 4)), np.array([0, 1, 1])), ["cat", "dog"])
    Annotations(labels: 3 items, 1 raters, 2 classes, 0 answers)
    """
    images, truth = pictures
    return Annotations.from_answers(np.full((len(truth), 1), -1), images=images, classes=classes, truth=truth)
