"""People who give class labels, each written as a confusion matrix ``[true, observed]`` whose rows sum to 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from annotruth.errors import InputError
from annotruth.validation import one_of


def pairwise_flipper(n_classes: int, skill: float, rng: np.random.Generator) -> np.ndarray:
    """Someone who is right with probability ``skill`` and else gives, for each class, always the same wrong label.

    Returns
    -------
    (n_classes, n_classes); the wrong label of each class is drawn uniformly from the other classes

    Examples
    --------
    >>> pairwise_flipper(3, skill=0.75, rng=np.random.default_rng(1))
    array([[0.75, 0.25, 0.  ],
           [0.25, 0.75, 0.  ],
           [0.  , 0.25, 0.75]])
    """
    _check(n_classes, skill)
    classes = np.arange(n_classes)
    target = (classes + rng.integers(1, n_classes, size=n_classes)) % n_classes
    matrix = skill * np.eye(n_classes)
    matrix[classes, target] = 1 - skill
    return matrix


def hammer_spammer(n_classes: int, skill: float) -> np.ndarray:
    """Someone who is right with probability ``skill`` and else guesses, all classes (the right one too) alike.

    Examples
    --------
    >>> hammer_spammer(4, skill=0.6).round(2)[0]
    array([0.7, 0.1, 0.1, 0.1])
    """
    _check(n_classes, skill)
    return skill * np.eye(n_classes) + (1 - skill) / n_classes


def similar_mixer(n_classes: int, skill: float, groups: Sequence[Sequence[int]]) -> np.ndarray:
    """Someone who mixes up similar classes: right with probability ``skill``, else another class of the same group.

    Classes in no group are always named rightly.

    Examples
    --------
    >>> similar_mixer(3, skill=0.75, groups=[(0, 2)])
    array([[0.75, 0.  , 0.25],
           [0.  , 1.  , 0.  ],
           [0.25, 0.  , 0.75]])
    """
    _check(n_classes, skill)
    matrix = np.eye(n_classes)
    members = [member for group in groups for member in group]
    if len(set(members)) != len(members) or any(len(group) < 2 for group in groups):
        raise InputError("Groups of similar classes need two members or more, and no class may be in two groups.")
    for group in groups:
        matrix[np.ix_(group, group)] = (1 - skill) / (len(group) - 1)
        matrix[group, group] = skill
    return matrix


def neighbour_mixer(n_classes: int, skill: float) -> np.ndarray:
    """Someone who is right with probability ``skill`` and else gives the class before or after; the ends have one.

    Examples
    --------
    >>> neighbour_mixer(3, skill=0.5)
    array([[0.5 , 0.5 , 0.  ],
           [0.25, 0.5 , 0.25],
           [0.  , 0.5 , 0.5 ]])
    """
    _check(n_classes, skill)
    beside = np.eye(n_classes, k=1) + np.eye(n_classes, k=-1)
    return skill * np.eye(n_classes) + (1 - skill) * beside / beside.sum(axis=1, keepdims=True)


def class_swapper(n_classes: int, skill: float, rng: np.random.Generator) -> np.ndarray:
    """Someone who has the class names wrong: unless right, with probability ``skill``, gives a permuted class.

    Returns
    -------
    (n_classes, n_classes); the permutation is random and moves every class

    Examples
    --------
    >>> class_swapper(3, skill=0.0, rng=np.random.default_rng(0))
    array([[0., 1., 0.],
           [0., 0., 1.],
           [1., 0., 0.]])
    """
    _check(n_classes, skill)
    order = rng.permutation(n_classes)  # each class becomes the next one in a random cycle through all
    matrix = skill * np.eye(n_classes)
    matrix[order, np.roll(order, -1)] = 1 - skill
    return matrix


def label_group(
    kind: Literal["pairwise-flipper", "hammer-spammer"],
    n_raters: int,
    n_classes: int,
    skill: float,
    *,
    spread: float = 0.01,
    seed: int = 0,
) -> np.ndarray:
    """Draw a group of raters of one kind, whose skills vary a little, as Tanno et al. 2019 do.

    Parameters
    ----------
    skill, spread : mean and standard deviation of the normal distribution of skills, which are clipped to [0, 1]

    Returns
    -------
    (n_raters, n_classes, n_classes) confusion matrices

    Examples
    --------
    >>> label_group("pairwise-flipper", 5, n_classes=10, skill=0.4).shape
    (5, 10, 10)
    """
    one_of(kind, ("pairwise-flipper", "hammer-spammer"), "kind of label rater")
    rng = np.random.default_rng(seed)
    skills = np.clip(rng.normal(skill, spread, size=n_raters), 0, 1)
    if kind == "hammer-spammer":
        return np.stack([hammer_spammer(n_classes, s) for s in skills])
    return np.stack([pairwise_flipper(n_classes, s, rng) for s in skills])


def cifar10_group(seed: int = 0) -> dict[str, np.ndarray]:
    """Four raters of CIFAR-10 who err in four ways and are right in 45 % of their labels, after Tanno et al. 2019.

    One guesses, one mixes up similar classes, one confuses neighbouring class numbers, and one has the names wrong.
    The paper shows its matrices only as pictures, so these are alike in kind, not in number.

    Examples
    --------
    >>> group = cifar10_group()
    >>> list(group)
    ['guesses', 'mixes_similar', 'mixes_neighbours', 'names_wrong']
    >>> round(float(np.mean([np.diagonal(matrix).mean() for matrix in group.values()])), 3)
    0.45
    """
    # airplane–ship, automobile–truck, bird–frog, cat–dog, deer–horse
    similar = [(0, 8), (1, 9), (2, 6), (3, 5), (4, 7)]
    return {
        "guesses": hammer_spammer(10, skill=0.5),
        "mixes_similar": similar_mixer(10, skill=0.6, groups=similar),
        "mixes_neighbours": neighbour_mixer(10, skill=0.55),
        "names_wrong": class_swapper(10, skill=0.1, rng=np.random.default_rng(seed)),
    }


def _check(n_classes: int, skill: float) -> None:
    if n_classes < 2:
        raise InputError(f"Raters need two classes or more to tell apart, found {n_classes}.")
    if not 0 <= skill <= 1:
        raise InputError(f"A skill is a probability between 0 and 1, found {skill}.")
