"""The labels an estimator has been given so far, by fit and partial_fit, as votes; masks stay where they lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.data.answers import Answers, sort_answers
from annotruth.errors import InputError, shorten
from annotruth.fusion.gold import Gold, GoldMasks, gold_answers
from annotruth.fusion.patterns import PatternLookup, Patterns, count_patterns, merge_patterns
from annotruth.fusion.votes import Votes
from annotruth.validation import MISSING_LABEL, MISSING_PIXEL


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


@dataclass(frozen=True)
class MaskSource:
    """One batch of cases, read case by case.

    Attributes
    ----------
    position : (raters of this batch,) where they stand among all raters
    patterns : the tuples of votes of all its cases
    cases : the same case by case, where estimates are made so
    unlabelled : (items,) pixels that nobody labelled
    """

    annotations: Annotations
    gold: GoldMasks
    position: np.ndarray
    patterns: Patterns
    cases: list[Patterns] | None
    unlabelled: np.ndarray

    @classmethod
    def made(
        cls, annotations: Annotations, gold: GoldMasks, position: np.ndarray, cases: list[Patterns], by_case: bool
    ) -> MaskSource:
        """Sum up the patterns of the cases."""
        patterns = merge_patterns(cases, len(annotations.classes))
        unlabelled = np.array([case.unlabelled() for case in cases])
        return cls(annotations, gold, position, patterns, cases if by_case else None, unlabelled)

    def patterns_of(self, index: int) -> Patterns:
        """Patterns among which one case's are: its own where they were kept, else all of the batch."""
        return self.patterns if self.cases is None else self.cases[index]

    def lookup(self, index: int) -> PatternLookup:
        """Where the pixels of a case find their place among :meth:`patterns_of`."""
        patterns = self.patterns_of(index)
        return PatternLookup(patterns, len(self.annotations.classes), with_gold=bool(self.gold))

    def read(self, index: int) -> tuple[np.ndarray, np.ndarray | None]:
        """One case's masks (raters, pixels) and gold labels (pixels,), or None if no case has any."""
        return _read_case(self.annotations, self.gold, index)


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
    masks, truth = _read_case(annotations, known, index)
    try:
        return count_patterns(masks, len(annotations.classes), truth)
    except InputError:
        annotations.item_masks(index)  # the slower check, which names the rater and the label
        raise


class CollectedMasks:
    """Cases with masks. Only their vote patterns are kept; the masks are read again when they are asked for.

    Parameters
    ----------
    only : number of the one class that is told apart from all others, or None
    by_case : keep the patterns of each case
    """

    def __init__(self, only: int | None, by_case: bool) -> None:
        self.items: tuple[str, ...] = ()
        self.raters: tuple[str, ...] = ()
        self.sources: list[MaskSource] = []
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
        self.sources.append(MaskSource.made(annotations, known, position, list(cases), self._by_case))
        self.items, self.raters = self.items + annotations.items, raters

    def votes_of(self, patterns: Patterns, source: MaskSource, n_classes: int) -> Votes:
        """Votes of some patterns of a source, with all raters in their places."""
        patterns = Patterns(self.relabelled(patterns.votes), self.relabelled(patterns.gold), patterns.counts)
        return patterns.for_raters(source.position, len(self.raters), n_classes)

    def relabelled(self, masks: np.ndarray) -> np.ndarray:
        """Masks with labels counted as the classes they stand for."""
        return masks if self._class_numbers is None else self._class_numbers[masks]

    def votes(self, n_classes: int) -> Votes:
        """Votes of all cases."""
        return _joined([self.votes_of(source.patterns, source, n_classes) for source in self.sources])

    def find(self, index: int) -> tuple[MaskSource, int]:
        """The source of an item, and its position there."""
        if not -len(self.items) <= index < len(self.items):
            raise InputError(f"There are {len(self.items)} items; number {index} is not among them.")
        index %= len(self.items)
        for source in self.sources:
            if index < len(source.annotations):
                return source, index
            index -= len(source.annotations)
        raise AssertionError("unreachable: every item has a source")

    def shapes(self) -> list[tuple[int, ...]]:
        return [source.annotations.shape(i) for source in self.sources for i in range(len(source.annotations))]

    @property
    def unlabelled(self) -> np.ndarray:
        return np.concatenate([source.unlabelled for source in self.sources])


class CollectedAnswers:
    """A label table that may grow by items, raters and answers. ``only`` as in :class:`CollectedMasks`."""

    def __init__(self, only: int | None) -> None:
        self.items: tuple[str, ...] = ()
        self.raters: tuple[str, ...] = ()
        self.answers = Answers(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int16))
        self.gold = np.empty(0, dtype=np.int16)
        self._only = only
        self._votes: Votes | None = None

    def add(self, annotations: Annotations, gold: Gold) -> None:
        self._votes = None
        known = gold_answers(annotations, gold)
        raters, rater = place_raters(self.raters, annotations.raters)
        if not self.items:
            self.items, self.raters, self.answers, self.gold = annotations.items, raters, annotations.answers, known
            return
        place = {name: index for index, name in enumerate(self.items)}
        fresh = tuple(name for name in annotations.items if name not in place)
        place.update({name: len(place) + index for index, name in enumerate(fresh)})
        item = np.array([place[name] for name in annotations.items], dtype=np.int64)
        gold_now = np.concatenate([self.gold, np.full(len(fresh), MISSING_LABEL, dtype=np.int16)])
        clash = (known != MISSING_LABEL) & (gold_now[item] != MISSING_LABEL) & (gold_now[item] != known)
        if clash.any():
            named = [annotations.items[i] for i in np.flatnonzero(clash)]
            raise InputError(f"Gold labels contradict earlier ones: {shorten(named)}.")
        more = annotations.answers
        answers = _without_repeats(
            np.concatenate([self.answers.item, item[more.item]]),
            np.concatenate([self.answers.rater, rater[more.rater]]),
            np.concatenate([self.answers.label, more.label]),
            self.items + fresh,
            raters,
        )
        gold_now[item] = np.where(known == MISSING_LABEL, gold_now[item], known)
        self.items, self.raters, self.answers, self.gold = self.items + fresh, raters, answers, gold_now

    def votes(self, n_classes: int) -> Votes:
        if self._votes is None:
            self._votes = self._gather(n_classes)
        return self._votes

    def _gather(self, n_classes: int) -> Votes:
        answers, gold = self.answers, self.gold
        if self._only is not None:
            answers = Answers(answers.item, answers.rater, (answers.label == self._only).astype(np.int16))
            gold = np.where(gold == MISSING_LABEL, gold, (gold == self._only).astype(np.int16))
        return Votes.from_answers(answers, len(self.items), len(self.raters), n_classes, gold)

    @property
    def unlabelled(self) -> np.ndarray:
        answered = np.bincount(self.answers.item, minlength=len(self.items)) > 0
        return (~answered & (self.gold == MISSING_LABEL)).astype(np.int64)


def _without_repeats(
    item: np.ndarray, rater: np.ndarray, label: np.ndarray, items: tuple[str, ...], raters: tuple[str, ...]
) -> Answers:
    answers = sort_answers(item, rater, label)
    again = (np.diff(answers.item) == 0) & (np.diff(answers.rater) == 0)
    differ = np.flatnonzero(again & (np.diff(answers.label) != 0))
    if len(differ):
        named = [f"{items[answers.item[i]]} by {raters[answers.rater[i]]}" for i in differ[:10]]
        raise InputError(f"These answers contradict earlier ones: {shorten(named)}. Give each answer once.")
    keep = np.append(True, ~again) if len(answers) else slice(None)
    return Answers(answers.item[keep], answers.rater[keep], answers.label[keep])


def _joined(parts: list[Votes]) -> Votes:
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
    return Votes(answers, int(offset[-1]), parts[0].n_raters, parts[0].n_classes, weight, gold)
