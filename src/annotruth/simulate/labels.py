"""Class labels as several people would have given them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from annotruth.data.confusion import is_labelled
from annotruth.errors import InputError
from annotruth.simulate.simulation import Simulation, choose_raters
from annotruth.validation import MISSING_LABEL, unique_names


def simulate_labels(
    truth: np.ndarray,
    raters: np.ndarray | Sequence[np.ndarray] | Mapping[str, np.ndarray],
    *,
    n_classes: int | None = None,
    keep: int | Literal["all"] = "all",
    seed: int = 0,
) -> Simulation:
    """Simulate the labels that raters with given confusion matrices give.

    Parameters
    ----------
    truth : (items,) class numbers, -1 = unknown (nobody labels those)
    raters : (raters, classes, classes) matrices [true, observed] whose rows sum to 1, or matrices by name; see
        :func:`pairwise_flipper`, :func:`hammer_spammer` and :func:`label_group`
    n_classes : by default what the matrices say
    keep : "all", or how many raters, drawn at random, label each item; the other answers become -1
    seed : an item's labels do not change when items or raters are added behind it (with ``keep="all"``)

    Returns
    -------
    Simulation with ``answers`` (items, raters)

    Examples
    --------
    >>> truth = np.array([0, 1, 2, 2])
    >>> simulation = simulate_labels(truth, {"ann": np.eye(3), "bob": np.full((3, 3), 1 / 3)})
    >>> simulation.answers[:, 0]
    array([0, 1, 2, 2], dtype=int16)
    >>> simulation.annotations()
    Annotations(labels: 4 items, 2 raters, 3 classes, 8 answers)
    """
    names = tuple(raters) if isinstance(raters, Mapping) else None
    matrices = _check_matrices(list(raters.values()) if isinstance(raters, Mapping) else list(raters), n_classes)
    names = names if names is not None else tuple(f"rater_{number + 1}" for number in range(len(matrices)))
    truth = np.asarray(truth)
    if truth.ndim != 1 or len(truth) == 0:
        raise InputError(f"The truth must be one class number per item, found an array of shape {truth.shape}.")
    labelled = is_labelled(truth, matrices.shape[-1], "Truth")
    answers = np.full((len(truth), len(matrices)), MISSING_LABEL, dtype=np.int16)
    for position, matrix in enumerate(matrices):
        # A stream of random numbers per rater, one number per item in order, so that nothing depends on what follows.
        draw = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(position,))).random(len(truth))
        answers[labelled, position] = _draw(matrix, truth[labelled], draw[labelled])
    answers[~choose_raters(len(truth), len(matrices), keep, seed)] = MISSING_LABEL
    return Simulation(raters=unique_names(names, "rater"), truth=truth, answers=answers, confusion=matrices)


def _draw(matrix: np.ndarray, truth: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Turn uniform numbers (items,) into labels, by each true class' row of the matrix."""
    labels = np.empty(len(truth), dtype=np.int16)
    for true_class, row in enumerate(matrix):
        here = truth == true_class
        steps = np.cumsum(row)
        # The last step is 1 but for rounding, so divide by it; side="right" never gives a class of probability 0.
        labels[here] = np.searchsorted(steps / steps[-1], uniform[here], side="right")
    return labels


def _check_matrices(matrices: list[np.ndarray], n_classes: int | None) -> np.ndarray:
    shapes = {np.shape(matrix) for matrix in matrices}
    size = n_classes if n_classes is not None else len(matrices[0]) if matrices else 0
    if shapes != {(size, size)}:
        raise InputError(
            f"Raters need confusion matrices (classes, classes), here of size {size}, found {sorted(shapes)}."
        )
    stacked = np.stack(matrices).astype(float)
    if (stacked < 0).any() or not np.allclose(stacked.sum(axis=-1), 1):
        bad = int(np.argwhere((stacked < 0).any(axis=-1) | ~np.isclose(stacked.sum(axis=-1), 1))[0, 0])
        raise InputError(
            f"Rater {bad}: a confusion matrix [true, observed] must have no negative entry and rows that sum to 1."
        )
    return stacked
