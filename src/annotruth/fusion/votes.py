"""Votes: what expectation-maximisation needs to know of the labels, whether they came as masks or as a table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from annotruth.data.answers import Answers
from annotruth.validation import MISSING_LABEL, MISSING_PIXEL


@dataclass(frozen=True)
class Votes:
    """Rows of votes. A row is an item of a label table, or a tuple of votes that ``weight`` pixels share.

    Attributes
    ----------
    answers : the votes, ``answers.item`` counting rows
    n_rows, n_raters, n_classes : sizes
    weight : (rows,) how many items or pixels each row stands for
    gold : (rows,) int16 true class where it is known, -1 elsewhere
    first_answer : (rows + 1,) row i's votes are answers first_answer[i] … first_answer[i + 1] - 1
    cell : (answers,) where each answer's rater and label stand in flat tables (raters, observed, true)
    """

    answers: Answers
    n_rows: int
    n_raters: int
    n_classes: int
    weight: np.ndarray
    gold: np.ndarray

    @cached_property
    def first_answer(self) -> np.ndarray:
        return first_answers(self.answers, self.n_rows)

    @cached_property
    def cell(self) -> np.ndarray:
        return answer_cells(self.answers, self.n_raters, self.n_classes)

    @classmethod
    def from_answers(
        cls, answers: Answers, n_items: int, n_raters: int, n_classes: int, gold: np.ndarray | None = None
    ) -> Votes:
        """Take a label table, one row per item."""
        known = np.full(n_items, MISSING_LABEL, dtype=np.int16) if gold is None else gold.astype(np.int16)
        return cls(answers, n_items, n_raters, n_classes, np.ones(n_items), known)

    @classmethod
    def from_patterns(cls, patterns: np.ndarray, counts: np.ndarray, gold: np.ndarray, n_classes: int) -> Votes:
        """Take distinct vote tuples (raters, rows) of uint8 labels, 255 = missing, with how often each occurs."""
        row, rater = np.nonzero((patterns != MISSING_PIXEL).T)
        answers = Answers(row.astype(np.int32), rater.astype(np.int32), patterns[rater, row].astype(np.int16))
        known = np.where(gold == MISSING_PIXEL, MISSING_LABEL, gold.astype(np.int16))
        return cls(answers, patterns.shape[1], patterns.shape[0], n_classes, counts.astype(np.float64), known)

    @property
    def answered(self) -> np.ndarray:
        """Bool (rows,): whether anybody voted, or the truth is known."""
        return (np.diff(self.first_answer) > 0) | (self.gold != MISSING_LABEL)

    def labelled_counts(self) -> np.ndarray:
        """How many items or pixels each rater labelled, (raters,) float64."""
        weights = None if (self.weight == 1).all() else self.weight[self.answers.item]
        return np.bincount(self.answers.rater, weights, minlength=self.n_raters).astype(np.float64)

    def vote_counts(self) -> np.ndarray:
        """How many raters chose each class, (rows, classes) float64."""
        cell = self.answers.item.astype(np.int64) * self.n_classes + self.answers.label
        return np.bincount(cell, minlength=self.n_rows * self.n_classes).reshape(-1, self.n_classes).astype(np.float64)

    def unanimous(self) -> np.ndarray:
        """Bool (rows,): two raters or more voted, all alike."""
        counts = self.vote_counts()
        total = counts.sum(axis=1)
        return (total > 1) & (counts.max(axis=1, initial=0) == total)

    def reweighted(self, weight: np.ndarray) -> Votes:
        """Give the same rows other weights; a row of weight 0 teaches nothing."""
        other = Votes(self.answers, self.n_rows, self.n_raters, self.n_classes, weight, self.gold)
        other.__dict__.update(first_answer=self.first_answer, cell=self.cell)
        return other


def first_answers(answers: Answers, n_items: int) -> np.ndarray:
    """Where each item's answers begin, (items + 1,) int64, for answers sorted by item."""
    start = np.zeros(n_items + 1, dtype=np.int64)
    np.cumsum(np.bincount(answers.item, minlength=n_items), out=start[1:])
    return start


def answer_cells(answers: Answers, n_raters: int, n_classes: int) -> np.ndarray:
    """Where each answer's rater and label begin in a flat table (raters, observed, true), in the smallest type."""
    size = n_raters * n_classes**2
    dtype: type = np.uint32 if size < 2**32 else np.int64
    return (answers.rater.astype(dtype) * dtype(n_classes) + answers.label.astype(dtype)) * dtype(n_classes)
