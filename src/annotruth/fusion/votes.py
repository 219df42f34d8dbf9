"""Votes: what estimators need to know of the labels, whether they came as masks or as a table.

The pixels of masks are counted by their tuples of votes. With one confusion matrix per rater, a pixel matters only
through its tuple, and there are few distinct ones: everything expensive happens on them, and the pixels are read twice
and written once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from annotruth.data.answers import Answers
from annotruth.errors import InputError
from annotruth.fusion._em import PADDING, pixel_loops, row_loops
from annotruth.parallel.threads import run_parts, split_range, thread_count
from annotruth.validation import MISSING_LABEL, MISSING_PIXEL

MAX_NUMBERED_TUPLES = 2**16
"""Tuples are numbered directly while there can be no more than this many, and hashed beyond."""
_PART_PIXELS, _PART_ANSWERS = 2**20, 2**16


@dataclass(frozen=True)
class Votes:
    """Rows of votes. A row is an item of a label table, or a tuple of votes that ``weight`` pixels share.

    Attributes
    ----------
    answers : the votes, ``answers.item`` counting rows
    n_rows, n_raters, n_classes : sizes
    weight : (rows,) how many items or pixels each row stands for
    gold : (rows,) int16 true class where it is known, -1 elsewhere
    raters : their names, where they have any
    first_answer : (rows + 1,) row i's votes are answers first_answer[i] … first_answer[i + 1] - 1
    cell : (answers,) where each answer's rater and label stand in flat tables (raters, observed, true)
    """

    answers: Answers
    n_rows: int
    n_raters: int
    n_classes: int
    weight: np.ndarray
    gold: np.ndarray
    raters: tuple[str, ...] = ()

    @cached_property
    def first_answer(self) -> np.ndarray:
        return self._index[0]

    @cached_property
    def cell(self) -> np.ndarray:
        return answer_cells(self.answers, self.n_raters, self.n_classes)

    @classmethod
    def from_answers(
        cls,
        answers: Answers,
        n_items: int,
        n_raters: int,
        n_classes: int,
        gold: np.ndarray | None = None,
        raters: tuple[str, ...] = (),
    ) -> Votes:
        """Take a label table, one row per item."""
        known = np.full(n_items, MISSING_LABEL, dtype=np.int16) if gold is None else gold.astype(np.int16)
        return cls(answers, n_items, n_raters, n_classes, np.ones(n_items), known, raters)

    @classmethod
    def from_patterns(
        cls,
        patterns: np.ndarray,
        counts: np.ndarray,
        gold: np.ndarray,
        n_classes: int,
        raters: tuple[str, ...] = (),
    ) -> Votes:
        """Take distinct vote tuples (raters, rows) of uint8 labels, 255 = missing, with how often each occurs."""
        row, rater = np.nonzero((patterns != MISSING_PIXEL).T)
        answers = Answers(row.astype(np.int32), rater.astype(np.int32), patterns[rater, row].astype(np.int16))
        known = np.where(gold == MISSING_PIXEL, MISSING_LABEL, gold.astype(np.int16))
        return cls(answers, patterns.shape[1], patterns.shape[0], n_classes, counts.astype(np.float64), known, raters)

    @cached_property
    def answered(self) -> np.ndarray:
        """Bool (rows,): whether anybody voted, or the truth is known."""
        return (np.diff(self.first_answer) > 0) | (self.gold != MISSING_LABEL)

    def labelled_counts(self) -> np.ndarray:
        """How many items or pixels each rater labelled, (raters,) float64."""
        return self._labelled_counts.copy()

    @cached_property
    def _labelled_counts(self) -> np.ndarray:
        if (self.weight == 1).all():
            return self._index[1]
        return np.bincount(self.answers.rater, self.weight[self.answers.item], minlength=self.n_raters)

    @cached_property
    def _index(self) -> tuple[np.ndarray, np.ndarray]:
        """``first_answer``, and how many answers each rater gave, (raters,) float64."""
        return index_answers(self.answers, self.n_rows, self.n_raters)

    def vote_counts(self, weight: np.ndarray | None = None) -> np.ndarray:
        """How many raters chose each class, (rows, classes) float64; with ``weight`` (answers,), what they weigh."""
        cell = self.answers.item.astype(np.int64) * self.n_classes + self.answers.label
        counts = np.bincount(cell, weight, minlength=self.n_rows * self.n_classes)
        return counts.reshape(-1, self.n_classes).astype(np.float64, copy=False)

    def unanimous(self) -> np.ndarray:
        """Bool (rows,): two raters or more voted, all alike."""
        counts = self.vote_counts()
        total = counts.sum(axis=1)
        return (total > 1) & (counts.max(axis=1, initial=0) == total)

    def dice_with(self, posterior: np.ndarray) -> np.ndarray:
        """Dice of the majority vote and the most probable labels, (classes,); 1 for classes that neither has.

        Parameters
        ----------
        posterior : (rows, classes)

        Examples
        --------
        >>> tuples = np.array([[0, 1], [0, 1], [1, 1]], dtype=np.uint8)  # (raters, rows)
        >>> votes = Votes.from_patterns(tuples, np.array([60, 40]), np.array([255, 255]), 2)
        >>> votes.dice_with(np.array([[0.1, 0.9], [0.1, 0.9]])).round(2)  # follows the third rater
        array([0.  , 0.57])
        """
        told, voted = posterior.argmax(axis=1), self.vote_counts().argmax(axis=1)
        weight = self.weight * (np.diff(self.first_answer) > 0)
        both, one, other = (
            np.bincount(labels, weights, minlength=self.n_classes)
            for labels, weights in ((told, weight * (told == voted)), (told, weight), (voted, weight))
        )
        return np.where(one + other > 0, 2 * both / np.maximum(one + other, 1), 1.0)

    def reweighted(self, weight: np.ndarray) -> Votes:
        """Give the same rows other weights; a row of weight 0 teaches nothing."""
        other = replace(self, weight=weight)
        other.__dict__.update(_index=self._index, cell=self.cell)
        return other


def join_votes(parts: Sequence[Votes]) -> Votes:
    """Put the rows of several votes, of the same raters and classes, one after the other."""
    if len(parts) == 1:
        return parts[0]
    offset = np.cumsum([0] + [part.n_rows for part in parts])
    answers = Answers(
        np.concatenate([part.answers.item + np.int32(start) for part, start in zip(parts, offset)]),
        np.concatenate([part.answers.rater for part in parts]),
        np.concatenate([part.answers.label for part in parts]),
    )
    weight, gold = (np.concatenate([getattr(part, name) for part in parts]) for name in ("weight", "gold"))
    return replace(parts[0], answers=answers, n_rows=int(offset[-1]), weight=weight, gold=gold)


def first_answers(answers: Answers, n_items: int) -> np.ndarray:
    """Where each item's answers begin, (items + 1,) int64, for answers sorted by item."""
    start = np.zeros(n_items + 1, dtype=np.int64)
    np.cumsum(np.bincount(answers.item, minlength=n_items), out=start[1:])
    return start


def index_answers(answers: Answers, n_items: int, n_raters: int) -> tuple[np.ndarray, np.ndarray]:
    """:func:`first_answers`, and how many answers each rater gave, (raters,) float64, in one pass.

    Examples
    --------
    >>> answers = Answers(np.array([0, 0, 2], np.int32), np.array([0, 1, 1], np.int32), np.zeros(3, np.int16))
    >>> index_answers(answers, 4, 2)
    (array([0, 2, 2, 3, 3]), array([1., 2.]))
    """
    loops, start = row_loops(len(answers)), np.empty(n_items + 1, dtype=np.int64)
    parts = split_range(len(answers), max(_PART_ANSWERS, 8 * n_raters))  # adding up costs less than counting
    given = np.zeros((len(parts), n_raters + PADDING))

    def work(lane: int, first: int, last: int) -> None:
        loops.index_answers(first, last, answers.item, answers.rater, start, given[lane])

    run_parts(work, [(lane, *part) for lane, part in enumerate(parts)])
    start[answers.item[-1] + 1 if len(answers) else 0 :] = len(answers)
    return start, given.sum(axis=0)[:n_raters]


def answer_cells(answers: Answers, n_raters: int, n_classes: int) -> np.ndarray:
    """Where each answer's rater and label begin in a flat table (raters, observed, true), in the smallest type."""
    dtype = cell_type(n_raters, n_classes)
    return (answers.rater.astype(dtype) * dtype(n_classes) + answers.label.astype(dtype)) * dtype(n_classes)


def cell_type(n_raters: int, n_classes: int) -> type:
    """The smallest type of :func:`answer_cells`."""
    return np.uint32 if n_raters * n_classes**2 < 2**32 else np.int64


# -- the tuples of votes over the pixels of masks ----------------------------------------------------------------


@dataclass(frozen=True)
class Patterns:
    """Distinct tuples of votes.

    Attributes
    ----------
    votes : (raters, patterns) uint8 labels, 255 = missing
    gold : (patterns,) uint8 true label where known, 255 elsewhere; pixels of known truth have tuples of their own
    counts : (patterns,) int64 pixels with this tuple
    """

    votes: np.ndarray
    gold: np.ndarray
    counts: np.ndarray

    def for_raters(self, position: np.ndarray, raters: tuple[str, ...], n_classes: int) -> Votes:
        """Give the votes to estimators, each rater at its position among all of them."""
        votes = np.full((len(raters), len(self.counts)), MISSING_PIXEL, dtype=np.uint8)
        votes[position] = self.votes
        return Votes.from_patterns(votes, self.counts, self.gold, n_classes, raters)

    def unlabelled(self) -> int:
        """Count the pixels that nobody labelled and whose truth is not known."""
        empty = (self.votes == MISSING_PIXEL).all(axis=0) & (self.gold == MISSING_PIXEL)
        return int(self.counts[empty].sum())


def count_patterns(masks: np.ndarray, n_classes: int, gold: np.ndarray | None = None) -> Patterns:
    """Count the distinct tuples of votes.

    Parameters
    ----------
    masks : (raters, pixels) uint8 labels, 255 = missing
    gold : (pixels,) uint8 true labels, 255 = unknown

    Raises
    ------
    InputError : a label lies outside the classes

    Examples
    --------
    >>> found = count_patterns(np.array([[0, 1, 1, 255], [0, 1, 1, 0]], dtype=np.uint8), n_classes=2)
    >>> found.votes.T.tolist(), found.counts.tolist()
    ([[0, 0], [1, 1], [255, 0]], [1, 2, 1])
    """
    masks, truth = _read_only(masks), _read_only(np.empty(0, np.uint8) if gold is None else gold)
    n_columns = len(masks) + (gold is not None)
    if (n_classes + 1) ** n_columns <= MAX_NUMBERED_TUPLES:
        return _count_dense(masks, truth, n_classes)
    return _count_hashed(masks, truth, n_classes, np.empty(0, dtype=np.int64))


def merge_patterns(parts: Sequence[Patterns], n_classes: int) -> Patterns:
    """Add up patterns counted apart, of the same raters.

    Examples
    --------
    >>> one = count_patterns(np.array([[0, 1]], dtype=np.uint8), n_classes=2)
    >>> merge_patterns([one, one], n_classes=2).counts.tolist()
    [2, 2]
    """
    if len(parts) == 1:
        return parts[0]
    votes, gold = np.concatenate([p.votes for p in parts], axis=1), np.concatenate([p.gold for p in parts])
    counts = np.concatenate([p.counts for p in parts])
    with_gold = bool((gold != MISSING_PIXEL).any())
    truth = _read_only(gold if with_gold else np.empty(0, np.uint8))
    size = (n_classes + 1) ** (len(votes) + with_gold)
    if size > MAX_NUMBERED_TUPLES:
        return _count_hashed(_read_only(votes), truth, n_classes, counts)
    total = np.zeros(size, dtype=np.int64)
    np.add.at(total, _codes(votes, truth, n_classes), counts)
    return _decoded(total, len(votes), n_classes)


class PatternLookup:
    """Where to find each pixel's pattern, for patterns counted over the same masks.

    Examples
    --------
    >>> masks = np.array([[0, 1, 1, 0], [0, 1, 1, 0]], dtype=np.uint8)
    >>> lookup = PatternLookup(count_patterns(masks, n_classes=2), n_classes=2)
    >>> lookup.write(masks, np.array([[10, 20]], dtype=np.uint8))
    array([[10, 20, 20, 10]], dtype=uint8)
    """

    def __init__(self, patterns: Patterns, n_classes: int, *, with_gold: bool = False) -> None:
        self._n_classes = n_classes
        votes, gold = _read_only(patterns.votes), _read_only(patterns.gold if with_gold else np.empty(0, np.uint8))
        self._table_size = (n_classes + 1) ** (len(votes) + with_gold)
        self._dense = self._table_size <= MAX_NUMBERED_TUPLES
        if self._dense:
            self._codes = _codes(votes, gold, n_classes)
        else:
            from annotruth.fusion._em import pattern_kernels

            self._slots, self._keys = pattern_kernels.hash_index(votes, gold)

    def write(
        self, masks: np.ndarray, table: np.ndarray, out: np.ndarray | None = None, gold: np.ndarray | None = None
    ) -> np.ndarray:
        """Write to each pixel its pattern's column of a table.

        Parameters
        ----------
        masks, gold : as in :func:`count_patterns`
        table : (rows, patterns) of float32 probabilities, uint8 labels below 255, or int32 numbers from 0
        out : (rows, pixels) to fill; made if not given
        """
        masks, truth = _read_only(masks), _read_only(np.empty(0, np.uint8) if gold is None else gold)
        table = np.ascontiguousarray(table)
        out = np.empty((len(table), masks.shape[1]), dtype=table.dtype) if out is None else out
        unknown = table.dtype.type(MISSING_PIXEL if table.dtype == np.uint8 else -1)
        if self._dense:
            by_code = np.full((len(table), self._table_size), unknown, dtype=table.dtype)
            by_code[:, self._codes] = table
            loops = pixel_loops(masks.shape[1])

            def work(first: int, last: int) -> bool:
                return bool(loops.write_dense(masks, truth, first, last, self._n_classes, by_code, unknown, out))
        else:
            from annotruth.fusion._em import pattern_kernels

            def work(first: int, last: int) -> bool:
                return pattern_kernels.write_hashed(masks, truth, first, last, self._slots, self._keys, table, out)

        if not all(run_parts(work, split_range(masks.shape[1], _PART_PIXELS))):
            raise InputError("The masks hold votes that were not there when they were counted: have the files changed?")
        return out


def _count_dense(masks: np.ndarray, gold: np.ndarray, n_classes: int) -> Patterns:
    n_columns = len(masks) + (len(gold) > 0)
    size = (n_classes + 1) ** n_columns
    n_pixels = masks.shape[1]
    part = max(
        _PART_PIXELS // 8, -(-n_pixels // (4 * thread_count()))
    )  # counts are whole numbers: any parts give the same

    loops = pixel_loops(n_pixels)

    def work(first: int, last: int) -> tuple[np.ndarray, bool]:
        return loops.count_dense(masks, gold, first, last, n_classes, size)

    done = run_parts(work, split_range(n_pixels, part))
    if any(strange for _, strange in done):
        raise _outside(n_classes)
    total = sum((table for table, _ in done), np.zeros(size, dtype=np.int64))
    return _decoded(total, len(masks), n_classes)


def _codes(votes: np.ndarray, gold: np.ndarray, n_classes: int) -> np.ndarray:
    """Number tuples as the kernels do, (patterns,)."""
    codes = np.zeros(votes.shape[1], dtype=np.int64)
    for column in (*votes, gold) if len(gold) else votes:
        codes = codes * (n_classes + 1) + np.minimum(column, n_classes)
    return codes


def _decoded(total: np.ndarray, n_raters: int, n_classes: int) -> Patterns:
    """Give the patterns of a table of counts by code; a column beyond the raters' is the gold one."""
    codes = np.flatnonzero(total)
    columns, size = [], 1
    rest = codes
    while size < len(total):
        rest, digit = np.divmod(rest, n_classes + 1)
        columns.append(np.where(digit == n_classes, MISSING_PIXEL, digit).astype(np.uint8))
        size *= n_classes + 1
    columns.reverse()
    known = columns[-1] if len(columns) > n_raters else np.full(len(codes), MISSING_PIXEL, dtype=np.uint8)
    return Patterns(np.stack(columns[:n_raters]), known, total[codes])


def _count_hashed(masks: np.ndarray, gold: np.ndarray, n_classes: int, weight: np.ndarray) -> Patterns:
    """Count by hashing; with ``weight`` (pixels,), count each pixel so many times."""
    from annotruth.fusion._em import pattern_kernels as kernels

    def work(first: int, last: int) -> tuple[np.ndarray, np.ndarray, bool]:
        return kernels.count_hashed(masks, gold, first, last, n_classes, weight)

    done = run_parts(work, split_range(masks.shape[1], _PART_PIXELS))
    if any(strange for _, _, strange in done):
        raise _outside(n_classes)
    seen_at = np.concatenate([where for where, _, _ in done]) if done else np.empty(0, dtype=np.int64)
    counts = np.concatenate([count for _, count, _ in done]) if done else np.empty(0, dtype=np.int64)
    votes = np.ascontiguousarray(masks[:, seen_at])
    known = gold[seen_at] if len(gold) else np.full(len(seen_at), MISSING_PIXEL, dtype=np.uint8)
    if len(done) <= 1:
        return Patterns(votes, known, counts)
    part, part_gold = _read_only(votes), _read_only(known)
    first_seen, total, _ = kernels.count_hashed(part, part_gold, 0, len(known), n_classes, counts)
    return Patterns(votes[:, first_seen], known[first_seen], total)


def _outside(n_classes: int) -> InputError:
    return InputError(f"A mask holds labels outside its {n_classes} classes.")


def _read_only(array: np.ndarray) -> np.ndarray:
    """Give kernels one kind of array whether it came from memory or from a read-only file."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
