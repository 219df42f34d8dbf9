"""Random crowds that label pictures of a few kinds, drawn by a seed: how many they are, how they err, what they see."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from annotruth import Annotations
from annotruth.metrics import dominance_margin
from annotruth.simulate import hammer_spammer, pairwise_flipper, simulate_labels

CHOOSING, REPORTED = range(1000, 1200), range(200)
"""Crowds on which weights and rules may be chosen, and those of which is told."""
KINDS = ("guess", "flip", "flip alike", "mixed")
CLASSES, RATERS = (2, 3, 4, 5), (2, 3, 4, 5, 8)
LOOKS_PER_CLASS = 6
"""How many kinds of pictures show a class most often."""
DENSE_ITEMS, ONE_LABEL_ITEMS = 1500, 4500


@dataclass(frozen=True)
class Crowd:
    """What a crowd saw and said, and what is true.

    Attributes
    ----------
    looks : (items,) which kind of picture each item is
    posterior : (looks, classes) how often a picture of this kind shows each class
    truth : (items,) true classes;  answers : (items, raters), -1 = not asked
    matrices : (raters, classes, classes) the raters' true confusion, [true, observed]
    kind : how they err;  one_label : whether one rater labels each item;  clear : whether a look shows one class only
    """

    looks: np.ndarray
    posterior: np.ndarray
    truth: np.ndarray
    answers: np.ndarray
    matrices: np.ndarray
    kind: str
    one_label: bool
    clear: bool

    @property
    def margin(self) -> float:
        """By how much the mean matrix is diagonally dominant; negative where it is not."""
        return dominance_margin(self.matrices)

    @property
    def annotations(self) -> Annotations:
        """The label table, with looks as features (items, looks), all 0 but one."""
        images = np.eye(len(self.posterior), dtype=np.float32)[self.looks]
        return Annotations.from_answers(self.answers, images=images, classes=self.posterior.shape[1], truth=self.truth)


def draw_crowd(seed: int) -> Crowd:
    """A crowd by its number.

    Examples
    --------
    >>> crowd = draw_crowd(0)
    >>> crowd.answers.shape == (len(crowd.truth), len(crowd.matrices))
    True
    """
    rng = np.random.default_rng([seed, 22])
    classes, raters = int(rng.choice(CLASSES)), int(rng.choice(RATERS))
    kind, one_label, clear = str(rng.choice(KINDS)), bool(rng.random() < 0.3), bool(rng.random() < 0.5)
    matrices = _raters(kind, raters, classes, rng)
    main = np.repeat(np.arange(classes), LOOKS_PER_CLASS)
    sure = np.ones(len(main)) if clear else rng.uniform(0.6, 0.95, len(main))
    posterior = sure[:, None] * np.eye(classes)[main] + (1 - sure[:, None]) * rng.dirichlet(np.ones(classes), len(main))
    looks = rng.integers(len(main), size=ONE_LABEL_ITEMS if one_label else DENSE_ITEMS)
    truth = (rng.random((len(looks), 1)) > posterior[looks].cumsum(axis=1)).sum(axis=1).clip(max=classes - 1)
    answers = simulate_labels(truth, matrices, keep=1 if one_label else "all", seed=seed).answers
    assert answers is not None
    return Crowd(looks, posterior, truth, np.asarray(answers), matrices, kind, one_label, clear)


def _raters(kind: str, raters: int, classes: int, rng: np.random.Generator) -> np.ndarray:
    """Matrices (raters, classes, classes) of a kind; the raters' skills lie around one that is drawn, too."""
    skills = np.clip(rng.uniform(0.2, 0.95) + rng.normal(0, 0.1, raters), 0.05, 1)
    direction = int(rng.integers(2**31))
    matrices = []
    for skill in skills.tolist():
        how = str(rng.choice(KINDS[:3])) if kind == "mixed" else kind
        if how == "guess":
            matrices.append(hammer_spammer(classes, skill))
        else:
            flips = np.random.default_rng(direction) if how == "flip alike" else rng
            matrices.append(pairwise_flipper(classes, skill, flips))
    return np.stack(matrices)
