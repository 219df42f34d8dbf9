"""What a classifier's view of the truth says of the raters: how often each was right, and how sure that is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.data.answers import Answers
from annotruth.fusion.em import MIN_EXPECTED_COUNT, log_of, truth_posterior
from annotruth.fusion.raters import diagonal_interval, share_interval
from annotruth.fusion.votes import first_answers
from annotruth.training.raters import hold

MOST_KEPT = 2**27
"""Numbers in all raters' matrices up to which they are kept at once: one gigabyte."""
MOST_BOUNDED = 2**18
"""Numbers in all raters' matrices up to which each has an interval: a second's work."""
BLOCK = 1024
"""Items whose truth is estimated at once."""


@dataclass(frozen=True)
class Evidence:
    """How the raters' answers meet the estimated truth.

    Attributes
    ----------
    given : (raters,) how many answers each gave
    frequency : (classes,) how common each class is
    of_class : (raters, classes) expected items of each true class that a rater answered
    right : (raters, classes) expected right answers among them
    met : (raters, classes, classes) all expected answers, [true, observed]; None where they are too many to keep
    """

    given: np.ndarray
    frequency: np.ndarray
    of_class: np.ndarray
    right: np.ndarray
    met: np.ndarray | None

    @classmethod
    def of(
        cls,
        annotations: Annotations,
        truth_of: Callable[[range], np.ndarray],
        learnt: np.ndarray | None = None,
    ) -> Evidence:
        """Go through all items, ``truth_of`` giving the probabilities (items, classes) of some.

        With matrices (raters, classes, classes) ``learnt``, answers are counted against what the items and all answers
        say together: a network that is rightly unsure would make good raters look careless.
        """
        answers, n_raters, n_classes = annotations.answers, len(annotations.raters), len(annotations.classes)
        first = first_answers(answers, len(annotations))
        frequency = np.zeros(n_classes)
        of_class, right = np.zeros((2, n_raters, n_classes))
        kept = n_raters * n_classes**2 <= MOST_KEPT
        by_label = np.zeros((n_raters, n_classes, n_classes) if kept else 0)
        for start in range(0, len(annotations), BLOCK):
            items = range(start, min(start + BLOCK, len(annotations)))
            truth = truth_of(items)
            frequency += truth.sum(axis=0)
            here = slice(first[items.start], first[items.stop])
            rater, label = answers.rater[here], answers.label[here]
            if learnt is not None:
                who, number = np.unique(rater, return_inverse=True)
                given = Answers(answers.item[here] - np.int32(items.start), number.astype(np.int32), label)
                truth, _ = truth_posterior(given, log_of(truth), log_of(np.maximum(learnt[who], MIN_EXPECTED_COUNT)))
            of_answer = truth[answers.item[here] - items.start]
            np.add.at(of_class, rater, of_answer)
            np.add.at(right, (rater, label), of_answer[np.arange(len(label)), label])
            if kept:
                np.add.at(by_label, (rater, label), of_answer)
        return cls(
            given=np.bincount(answers.rater, minlength=n_raters).astype(np.float64),
            frequency=frequency / frequency.sum(),
            of_class=of_class,
            right=right,
            met=np.ascontiguousarray(by_label.transpose(0, 2, 1)) if kept else None,
        )

    def confusion(self) -> np.ndarray | None:
        """Matrices (raters, classes, classes), each answer counted against the truth; None where too many to keep.

        A row without evidence is taken as faithful.
        """
        if self.met is None:
            return None
        total = self.of_class[..., None]
        faithful = np.broadcast_to(np.eye(self.met.shape[1]), self.met.shape)
        return np.where(total > 1e-9, self.met / np.maximum(total, 1e-9), faithful)

    def skill(self) -> np.ndarray:
        """Mean diagonal (raters,) of :meth:`confusion`."""
        known = self.of_class > 1e-9
        return np.where(known, self.right / np.maximum(self.of_class, 1e-9), 1.0).mean(axis=1)

    def skill_interval(self, skill: np.ndarray, level: float = 0.95) -> np.ndarray:
        """Credible bounds (raters, 2) of the skills, moved as far as needed to hold the estimates ``skill``.

        Before anything is seen, each class's chance to be right may be anything (Jeffreys' prior).
        """
        low, high = diagonal_interval(self.right + 0.5, np.maximum(self.of_class - self.right, 0) + 0.5, level)
        return hold(skill, np.stack([low, high], axis=1))

    def confusion_interval(self, confusion: np.ndarray | None, level: float = 0.95) -> np.ndarray | None:
        """Credible bounds (raters, 2, classes, classes) of the matrices' entries; None where there are too many."""
        if confusion is None or self.met is None or confusion.size > MOST_BOUNDED:
            return None
        low, high = share_interval(self.met, np.maximum(self.of_class[..., None] - self.met, 0), level)
        return hold(confusion, np.stack([low, high], axis=1))
