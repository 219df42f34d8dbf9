"""Raters whose answers do not depend on the item: who guesses, or always says the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtr, ndtri, softmax

from annotruth.data.annotations import Annotations
from annotruth.data.confusion import normalise_rows
from annotruth.fusion.em import log_of
from annotruth.metrics import skill

LEVEL = 0.01
"""How often, at most, an honest rater is called a spammer."""
HONEST = 0.5
"""Share of the answers for which a rater must look at the item to be called honest; the others may be out of habit."""
MIN_ANSWERS = 10
"""Of fewer answers nothing is said."""
DOUBT = 0.05
"""Share of everybody's answers that may be anything: few answers make matrices look surer than they are."""
UNSEEN = 0.5
"""Answers of each class that every rater is taken to have given before, when it is asked how often they give it."""


@dataclass(frozen=True)
class Spamming:
    """How far raters' answers depend on the items, (raters,) each.

    Attributes
    ----------
    raters : names
    answers : how many each gave
    informative : how much an answer tells of the item: 0 = nothing, 1 = as much as an ordinary rater's; below 0 where
        raters are wrong more often than by chance
    chance_of_honest : probability that the weakest honest rater, who looks at every other item as an ordinary rater
        does and else answers out of habit, looks as uninformative on the same items or more so
    chance_of_spammer : probability that a spammer looks as different from the typical one or more so
    caught : probability that a spammer, on the same items, is called one
    level : how often, at most, an honest rater, however weak, is called a spammer
    """

    raters: tuple[str, ...]
    answers: np.ndarray
    informative: np.ndarray
    chance_of_honest: np.ndarray
    chance_of_spammer: np.ndarray
    caught: np.ndarray
    level: float = LEVEL

    def verdict(self, rater: int) -> Literal["spammer", "unclear", "informative"]:
        """Which of the two explains a rater's answers; unclear = both do, or there are too few."""
        if self.answers[rater] < MIN_ANSWERS:
            return "unclear"
        honest = self.chance_of_honest[rater] > self.level
        spammer = self.chance_of_spammer[rater] > self.level
        if honest == spammer:
            return "unclear" if honest else "informative"  # less so than others, or in another way
        return "spammer" if spammer else "informative"

    @property
    def spammers(self) -> tuple[str, ...]:
        """Who is called a spammer."""
        return tuple(name for number, name in enumerate(self.raters) if self.verdict(number) == "spammer")


def find_spammers(
    annotations: Annotations, frequency: np.ndarray, confusion: np.ndarray, level: float = LEVEL
) -> Spamming:
    """Test for each rater of a label table whether the answers depend on the items.

    What the *others* say of an item gives the probability of its classes, and with the matrix of an ordinary rater (the
    mean of the better half) the probability of each answer. A spammer gives each answer as often as ever, whatever the
    item; the weakest honest rater does so for every other item, and else is an ordinary one. The logarithm of the ratio
    of these two chances, summed over a rater's answers, is compared with what it would be of the weakest honest rater
    and of a spammer on the same items (its mean and deviation are known, and it is a sum of many). A spammer is whom
    the second explains and the first does not.

    Parameters
    ----------
    frequency : (classes,) how often each class is the true one
    confusion : (raters, classes, classes) of a fitted estimator
    level : how often, at most, an honest rater may be called a spammer

    Examples
    --------
    >>> from annotruth.fusion import DawidSkene
    >>> from annotruth.simulate import hammer_spammer, simulate_labels
    >>> truth = np.random.default_rng(0).integers(0, 3, 100)
    >>> crowd = {"ann": hammer_spammer(3, 0.8), "bob": hammer_spammer(3, 0.9), "cy": hammer_spammer(3, 0)}  # cy guesses
    >>> ann = simulate_labels(truth, crowd).annotations()
    >>> fused = DawidSkene().fit(ann)
    >>> find_spammers(ann, fused.predict_proba().mean(axis=0), fused.confusion_).spammers
    ('cy',)
    """
    answers, raters = annotations.answers, len(annotations.raters)
    given = np.bincount(answers.rater, minlength=raters)
    ordinary = _ordinary(confusion, given)
    by_item = others_posterior(annotations, frequency, confusion) @ ordinary  # chances of an ordinary rater's answers
    habit = np.zeros((raters, confusion.shape[1]))
    np.add.at(habit, (answers.rater, answers.label), 1.0)
    habit = normalise_rows(habit + UNSEEN)[answers.rater]
    weakest = HONEST * by_item + (1 - HONEST) * habit
    ratio = np.log(weakest) - np.log(habit)

    def sums(values: np.ndarray) -> np.ndarray:
        return np.bincount(answers.rater, weights=values, minlength=raters)

    def expected(chances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean = (chances * ratio).sum(axis=1)
        return sums(mean), np.sqrt(np.maximum(sums((chances * ratio**2).sum(axis=1) - mean**2), 1e-12))

    found = sums(ratio[np.arange(len(answers)), answers.label])
    of_ordinary, _ = expected(by_item)
    of_weakest, weakest_spread = expected(weakest)
    of_spammer, spammer_spread = expected(habit)
    away = (found - of_spammer) / spammer_spread
    highest = np.minimum(of_weakest + ndtri(level) * weakest_spread, of_spammer - ndtri(level / 2) * spammer_spread)
    lowest = of_spammer + ndtri(level / 2) * spammer_spread
    with np.errstate(divide="ignore", invalid="ignore"):
        informative = (found - of_spammer) / (of_ordinary - of_spammer)
    return Spamming(
        annotations.raters, given, np.where(given > 0, informative, np.nan),
        ndtr((found - of_weakest) / weakest_spread), 2 * ndtr(-np.abs(away)),
        np.maximum(ndtr((highest - of_spammer) / spammer_spread) - ndtr((lowest - of_spammer) / spammer_spread), 0),
        level,
    )  # fmt: skip


def smooth_matrices(confusion: np.ndarray) -> np.ndarray:
    """Matrices (raters, classes, classes) under which any answer may be anything, if seldom."""
    matrices = np.asarray(confusion, dtype=float)
    return (1 - DOUBT) * matrices + DOUBT / matrices.shape[-1]


def sum_logs(annotations: Annotations, frequency: np.ndarray, matrices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log-likelihood of the classes by each answer (answers, classes), and by all answers to an item (items, classes).

    The second, which holds the classes' frequency too, less some answers' share is what the others say of the item.
    """
    answers, classes = annotations.answers, len(frequency)
    told = log_of(matrices)[answers.rater, :, answers.label]
    together = np.broadcast_to(log_of(np.asarray(frequency, dtype=float)), (len(annotations), classes)).copy()
    for k in range(classes):
        together[:, k] += np.bincount(answers.item, weights=told[:, k], minlength=len(annotations))
    return told, together


def others_posterior(annotations: Annotations, frequency: np.ndarray, confusion: np.ndarray) -> np.ndarray:
    """How probable the classes of each answer's item are, by what everybody else says: (answers, classes).

    Parameters
    ----------
    frequency : (classes,) how common the classes are
    confusion : (raters, classes, classes), [true, observed]

    Examples
    --------
    >>> ann = Annotations.from_answers(np.array([[0, 1]]))
    >>> others_posterior(ann, np.full(2, 0.5), np.tile(np.eye(2) * 0.8 + 0.1, (2, 1, 1))).round(2)
    array([[0.12, 0.88],
           [0.88, 0.12]])
    """
    told, together = sum_logs(annotations, frequency, smooth_matrices(confusion))
    return np.asarray(softmax(together[annotations.answers.item] - told, axis=1))


def _ordinary(confusion: np.ndarray, given: np.ndarray) -> np.ndarray:
    """The mean matrix of the better half of the raters, each weighed by how much they answered."""
    right = skill(confusion)
    heard = given > 0
    better = heard & (right >= np.median(right[heard]))
    mean = np.average(np.asarray(confusion, dtype=float)[better], axis=0, weights=given[better])
    return (1 - DOUBT) * mean + DOUBT / len(mean)
