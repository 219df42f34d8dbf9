"""The labels an estimator has been given so far, by fit and partial_fit, as votes; masks stay where they lie."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from annotruth.data.annotations import Annotations, Spacing
from annotruth.data.answers import Answers, drop_repeats, sort_answers
from annotruth.errors import InputError, shorten
from annotruth.fusion.gold import Gold, GoldMasks, gold_answers
from annotruth.fusion.votes import PatternLookup, Patterns, Votes, count_patterns, join_votes, merge_patterns
from annotruth.validation import MISSING_LABEL, MISSING_PIXEL

_MAX_COUNTED_VOTES = 2**26


@dataclass(frozen=True)
class Case:
    """One case with masks: its pixels, and the votes that they make up.

    Attributes
    ----------
    masks : (raters of its batch, pixels) uint8 labels as classes of the truth, 255 = missing
    shape : the pixels' grid
    position : (raters of its batch,) where they stand among the raters of ``votes``
    votes : the distinct tuples of votes, one in each row
    spacing : millimetres from pixel to pixel along each axis; None where nobody told
    image : (channels, *shape) float32, read when it is first needed; refused where there is none
    """

    shape: tuple[int, ...]
    position: np.ndarray
    votes: Votes
    spacing: Spacing | None
    _lookup: PatternLookup = field(repr=False)
    _read: Callable[[], tuple[np.ndarray, np.ndarray | None]] = field(repr=False)
    _as_truth: Callable[[np.ndarray], np.ndarray] = field(repr=False)
    _read_image: Callable[[], np.ndarray] = field(repr=False)

    def to_pixels(self, table: np.ndarray) -> np.ndarray:
        """Give each pixel its row's column of a table (k, rows) float32, uint8 below 255 or int32; (k, pixels)."""
        masks, gold = self._pixels
        return self._lookup.write(masks, table, gold=gold)

    @cached_property
    def masks(self) -> np.ndarray:
        return self._as_truth(self._pixels[0])

    @cached_property
    def image(self) -> np.ndarray:
        return self._read_image()

    @cached_property
    def gold(self) -> np.ndarray | None:
        """True labels (pixels,) as classes of the truth, 255 = unknown; None if no case has any."""
        known = self._pixels[1]
        return None if known is None else self._as_truth(known)

    @cached_property
    def _pixels(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Masks and gold labels as they were counted, read when they are first needed."""
        return self._read()


def count_case(annotations: Annotations, index: int, gold: Gold | GoldMasks = None) -> Patterns:
    """Count one case's vote patterns; only this case is read.

    What it gives is small and travels between processes, to be handed to ``fit`` in one of them.

    Examples
    --------
    >>> annotations = Annotations.from_masks(np.zeros((1, 3, 8, 8), dtype=np.uint8))
    >>> count_case(annotations, 0).counts
    array([64])
    """
    known = gold if isinstance(gold, GoldMasks) else GoldMasks(annotations, gold)
    return _count(annotations, index, *_read_case(annotations, known, index))


def _count(annotations: Annotations, index: int, masks: np.ndarray, gold: np.ndarray | None) -> Patterns:
    try:
        return count_patterns(masks, len(annotations.classes), gold)
    except InputError:
        annotations.item_masks(index)  # the slower check, which names the rater and the label
        raise


def _read_case(annotations: Annotations, gold: GoldMasks, index: int) -> tuple[np.ndarray, np.ndarray | None]:
    """One case's masks (raters, pixels) and gold labels (pixels,); None if no case has any."""
    masks = annotations.item_masks(index, checked=False)
    if len(masks) != len(annotations.raters):
        raise InputError(f"Item {annotations.items[index]}: {len(masks)} masks for {len(annotations.raters)} raters.")
    flat = masks.reshape(len(masks), -1)
    if not gold:
        return flat, None
    known = gold.read(index)
    return flat, np.full(flat.shape[1], MISSING_PIXEL, dtype=np.uint8) if known is None else known.reshape(-1)


@dataclass(frozen=True)
class MaskBatch:
    """The cases of one fit or partial_fit, read case by case.

    Attributes
    ----------
    position : (raters of this batch,) where they stand among all raters
    patterns : the tuples of votes of all its cases
    cases : the same case by case, where they are needed so
    counted : the same case by case as long as they are few, to draw cases anew; otherwise None
    unlabelled : (items,) pixels that nobody labelled
    labelled : bool (items, raters of this batch) who labelled anything of which case
    first_row : where its patterns begin among those of all batches
    """

    annotations: Annotations
    gold: GoldMasks
    position: np.ndarray
    patterns: Patterns
    cases: list[Patterns] | None
    counted: list[Patterns] | None
    unlabelled: np.ndarray
    labelled: np.ndarray
    first_row: int

    @classmethod
    def from_cases(
        cls,
        annotations: Annotations,
        gold: GoldMasks,
        position: np.ndarray,
        cases: list[Patterns],
        by_case: bool,
        first_row: int,
    ) -> MaskBatch:
        """Sum up the patterns of the cases."""
        patterns = merge_patterns(cases, len(annotations.classes))
        unlabelled = np.array([case.unlabelled() for case in cases])
        labelled = np.stack([(case.votes != MISSING_PIXEL).any(axis=1) for case in cases])
        few = sum(case.votes.size for case in cases) <= _MAX_COUNTED_VOTES
        own, counted = cases if by_case else None, cases if few else None
        return cls(annotations, gold, position, patterns, own, counted, unlabelled, labelled, first_row)

    def lookup(self, patterns: Patterns) -> PatternLookup:
        """Where pixels find their place among some patterns of this batch."""
        return PatternLookup(patterns, len(self.annotations.classes), with_gold=bool(self.gold))

    def read(self, index: int) -> tuple[np.ndarray, np.ndarray | None]:
        """One case's masks (raters, pixels) and gold labels (pixels,), or None if no case has any."""
        return _read_case(self.annotations, self.gold, index)


class MaskStore:
    """Cases with masks. Only their vote patterns are kept; the masks are read again when they are asked for.

    Parameters
    ----------
    n_classes : of the truth
    only : number of the one class that is told apart from all others, or None
    by_case : keep the patterns of each case
    """

    def __init__(self, n_classes: int, only: int | None, by_case: bool) -> None:
        self.items: tuple[str, ...] = ()
        self.raters: tuple[str, ...] = ()
        self.batches: list[MaskBatch] = []
        self._n_classes = n_classes
        self._by_case = by_case
        self._class_numbers: np.ndarray | None = None
        if only is not None:
            self._class_numbers = np.zeros(256, dtype=np.uint8)
            self._class_numbers[[only, MISSING_PIXEL]] = 1, MISSING_PIXEL

    def add(self, annotations: Annotations, gold: Gold, patterns: Sequence[Patterns] | None) -> None:
        again = sorted(set(self.items) & set(annotations.items))
        if again:
            raise InputError(f"These items are already there: {shorten(again)}. Give each case once.")
        known = GoldMasks(annotations, gold)
        cases = patterns or [count_case(annotations, index, known) for index in range(len(annotations))]
        if len(cases) != len(annotations):
            raise InputError(f"{len(annotations)} items but patterns of {len(cases)}: there must be one each.")
        raters, position = place_raters(self.raters, annotations.raters)
        first_row = sum(len(batch.patterns.counts) for batch in self.batches)
        batch = MaskBatch.from_cases(annotations, known, position, list(cases), self._by_case, first_row)
        self.batches.append(batch)
        self.items, self.raters = self.items + annotations.items, raters

    def votes(self) -> Votes:
        """Votes of all cases."""
        return join_votes([self.votes_of(batch, batch.patterns) for batch in self.batches])

    def labelled(self) -> np.ndarray:
        """Who labelled anything of which case: bool (items, raters)."""
        labelled = np.zeros((len(self.items), len(self.raters)), dtype=bool)
        first = 0
        for batch in self.batches:
            labelled[first : first + len(batch.labelled), batch.position] = batch.labelled
            first += len(batch.labelled)
        return labelled

    def votes_of(self, batch: MaskBatch, patterns: Patterns) -> Votes:
        """Votes of some patterns of a batch, with all raters in their places."""
        patterns = Patterns(self._as_truth(patterns.votes), self._as_truth(patterns.gold), patterns.counts)
        return patterns.for_raters(batch.position, self.raters, self._n_classes)

    def case(self, index: int) -> Case:
        """One case by itself; its pixels are read when they are first needed."""
        batch, local = self.find(index)
        read: Callable[[], tuple[np.ndarray, np.ndarray | None]]
        if batch.cases is not None:
            patterns, read = batch.cases[local], partial(batch.read, local)
        else:
            pixels = batch.read(local)
            patterns, read = _count(batch.annotations, local, *pixels), lambda: pixels
        shape, votes = batch.annotations.shape(local), self.votes_of(batch, patterns)
        spacing, image = batch.annotations.spacing(local), partial(batch.annotations.item_image, local)
        return Case(shape, batch.position, votes, spacing, batch.lookup(patterns), read, self._as_truth, image)

    def rows_of(self, index: int) -> np.ndarray:
        """Where the rows of a case's votes stand among those of :meth:`votes`; needs ``by_case``."""
        batch, local = self.find(index)
        cases = batch.cases or batch.counted
        if cases is None:
            raise ValueError("the patterns of the cases were not kept")
        own, n_patterns = cases[local], len(batch.patterns.counts)
        number = np.arange(n_patterns, dtype=np.int32)[None]
        gold = own.gold if batch.gold else None
        return batch.first_row + batch.lookup(batch.patterns).write(own.votes, number, gold=gold)[0]

    def case_counts(self) -> list[np.ndarray] | None:
        """How many of each case's pixels have each of its :meth:`rows_of`; None if that is too much to keep."""
        if any(batch.counted is None for batch in self.batches):
            return None
        return [case.counts for batch in self.batches for case in batch.counted or []]

    def find(self, index: int) -> tuple[MaskBatch, int]:
        """The batch of an item, and its position there."""
        if not -len(self.items) <= index < len(self.items):
            raise InputError(f"There are {len(self.items)} items; number {index} is not among them.")
        index %= len(self.items)
        for batch in self.batches:
            if index < len(batch.annotations):
                return batch, index
            index -= len(batch.annotations)
        raise AssertionError("unreachable: every item has a batch")

    def shapes(self) -> list[tuple[int, ...]]:
        return [batch.annotations.shape(i) for batch in self.batches for i in range(len(batch.annotations))]

    @property
    def unlabelled(self) -> np.ndarray:
        return np.concatenate([batch.unlabelled for batch in self.batches])

    def _as_truth(self, masks: np.ndarray) -> np.ndarray:
        """Masks with labels counted as the classes they stand for."""
        return masks if self._class_numbers is None else self._class_numbers[masks]


class AnswerStore:
    """A label table that may grow by items, raters and answers. ``n_classes`` and ``only`` as in :class:`MaskStore`."""

    def __init__(self, n_classes: int, only: int | None) -> None:
        self.items: tuple[str, ...] = ()
        self.raters: tuple[str, ...] = ()
        self._answers = Answers(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int16))
        self._gold = np.empty(0, dtype=np.int16)
        self._n_classes = n_classes
        self._only = only
        self._votes: Votes | None = None

    def add(self, annotations: Annotations, gold: Gold) -> None:
        self._votes = None
        known = gold_answers(annotations, gold)
        raters, rater = place_raters(self.raters, annotations.raters)
        if not self.items:
            self.items, self.raters, self._answers, self._gold = annotations.items, raters, annotations.answers, known
            return
        place = {name: index for index, name in enumerate(self.items)}
        fresh = tuple(name for name in annotations.items if name not in place)
        place.update({name: len(place) + index for index, name in enumerate(fresh)})
        item, items = np.array([place[name] for name in annotations.items], dtype=np.int64), self.items + fresh
        gold_now = np.concatenate([self._gold, np.full(len(fresh), MISSING_LABEL, dtype=np.int16)])
        clash = (known != MISSING_LABEL) & (gold_now[item] != MISSING_LABEL) & (gold_now[item] != known)
        if clash.any():
            named = [annotations.items[i] for i in np.flatnonzero(clash)]
            raise InputError(f"Gold labels contradict earlier ones: {shorten(named)}.")
        more = annotations.answers
        answers = sort_answers(
            np.concatenate([self._answers.item, item[more.item]]),
            np.concatenate([self._answers.rater, rater[more.rater]]),
            np.concatenate([self._answers.label, more.label]),
        )

        def contradiction(places: np.ndarray) -> InputError:
            named = [f"{items[answers.item[i]]} by {raters[answers.rater[i]]}" for i in places[:10]]
            return InputError(f"These answers contradict earlier ones: {shorten(named)}. Give each answer once.")

        answers = drop_repeats(answers, contradiction)
        gold_now[item] = np.where(known == MISSING_LABEL, gold_now[item], known)
        self.items, self.raters, self._answers, self._gold = items, raters, answers, gold_now

    def votes(self) -> Votes:
        """Votes with one row for each item."""
        if self._votes is None:
            answers, gold = self._answers, self._gold
            if self._only is not None:
                answers = Answers(answers.item, answers.rater, (answers.label == self._only).astype(np.int16))
                gold = np.where(gold == MISSING_LABEL, gold, (gold == self._only).astype(np.int16))
            n_items, n_raters = len(self.items), len(self.raters)
            self._votes = Votes.from_answers(answers, n_items, n_raters, self._n_classes, gold, self.raters)
        return self._votes

    @property
    def unlabelled(self) -> np.ndarray:
        return (~self.votes().answered).astype(np.int64)


def place_raters(known: tuple[str, ...], names: tuple[str, ...]) -> tuple[tuple[str, ...], np.ndarray]:
    """Add raters not met before to those known; give all names, and where ``names`` stand among them.

    Examples
    --------
    >>> place_raters(("ann", "bob"), ("cy", "ann"))
    (('ann', 'bob', 'cy'), array([2, 0]))
    """
    met = set(known)
    every = known + tuple(name for name in names if name not in met)
    place = {name: index for index, name in enumerate(every)}
    return every, np.array([place[name] for name in names], dtype=np.int64)
