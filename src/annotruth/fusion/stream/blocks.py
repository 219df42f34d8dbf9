"""Second pass: a bucket's answers, sorted by item and rater, become a block of items for the iterations to go over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from annotruth.data.answers import Answers, drop_repeats
from annotruth.errors import InputError
from annotruth.fusion._em import row_loops, table_loops
from annotruth.fusion.stream.pieces import Segment, read_segment
from annotruth.fusion.votes import Votes, answer_cells, cell_type
from annotruth.io.writing import atomic
from annotruth.parallel.threads import READING_HEADERS
from annotruth.validation import MISSING_LABEL

MOST_SHOWN = 10
"""Answers of a bucket that contradict each other, and are named."""


class BlockVotes(NamedTuple):
    """A block's votes as loops take them: see :class:`~annotruth.fusion.votes.Votes`."""

    first_answer: np.ndarray
    cell: np.ndarray
    weight: np.ndarray
    gold: np.ndarray


@dataclass(frozen=True)
class Block:
    """Some items and all answers on them, on disk.

    Attributes
    ----------
    home : what its files' names begin with
    n_items, n_answers : sizes
    n_raters, n_classes : of the whole table
    has_gold : whether the truth of some of its items is known
    """

    home: Path
    n_items: int
    n_answers: int
    n_raters: int
    n_classes: int
    has_gold: bool

    def load(self, first: int = 0, last: int | None = None) -> BlockVotes:
        """The votes of the items first … last - 1, by default of all."""
        last = self.n_items if last is None else last
        counts = self.read("counts")
        begin, end = int(counts[:first].sum(dtype=np.int64)), int(counts[:last].sum(dtype=np.int64))
        start = np.append(0, np.cumsum(counts[first:last], dtype=np.int64))
        gold = self.read("gold", first, last) if self.has_gold else np.full(last - first, MISSING_LABEL, np.int16)
        return BlockVotes(start, self.read("cells", begin, end), np.ones(last - first), gold)

    def votes(self, first: int = 0, last: int | None = None) -> Votes:
        """The same as votes, a row for each item."""
        found = self.load(first, last)
        n_items = len(found.gold)
        item = np.repeat(np.arange(n_items, dtype=np.int32), np.diff(found.first_answer))
        pair = found.cell // found.cell.dtype.type(self.n_classes)
        rater, label = np.divmod(pair, pair.dtype.type(self.n_classes))
        answers = Answers(item, rater.astype(np.int32), label.astype(np.int16))
        return Votes.from_answers(answers, n_items, self.n_raters, self.n_classes, found.gold)

    def labels(self, found: BlockVotes) -> np.ndarray:
        """The labels (answers,) int16 of votes of this block."""
        number = found.cell.dtype.type(self.n_classes)
        return (found.cell // number % number).astype(np.int16)

    def names(self, first: int, last: int) -> pa.Array:
        """Names of the items first … last - 1."""
        begin = self.read("offsets", first, last + 1)
        text = self.read("names", int(begin[0]), int(begin[-1]))
        return _strings(begin - begin[0], text)

    def read(self, what: str, first: int = 0, last: int | None = None) -> np.ndarray:
        """Entries first … last - 1 of one of its arrays, from disk."""
        dtype = np.dtype(self._types[what])
        count = -1 if last is None else last - first
        return np.fromfile(self._file(what), dtype, count, offset=first * dtype.itemsize)

    def write(self, **arrays: np.ndarray) -> None:
        """Put arrays beside those that are there."""
        for what, values in arrays.items():
            with atomic(self._file(what)) as temporary:
                np.ascontiguousarray(values, dtype=self._types[what]).tofile(temporary)

    @property
    def _types(self) -> dict[str, type]:
        return {
            "cells": cell_type(self.n_raters, self.n_classes), "counts": np.uint32, "gold": np.int16,
            "rows": np.int64, "offsets": np.int64, "names": np.uint8,
            "labels": np.int16, "probabilities": np.float32,
        }  # fmt: skip

    def _file(self, what: str) -> Path:
        return self.home.with_name(f"{self.home.name}-{what}.bin")


class Contradiction(NamedTuple):
    """Two answers of a rater on an item; sorted as the whole table would be."""

    first_row: int
    rater: int
    item: str
    labels: tuple[int, int]


@dataclass(frozen=True)
class BucketTask:
    """A bucket to be made a block.

    Attributes
    ----------
    segments : its shares of all pieces, in the table's order, each with where its part's raters and labels begin in the
        files ``raters.npy`` and ``labels.npy`` of the folder, which give numbers of the whole table
    gold : classes by the names of items, as far as they may be in this bucket
    """

    number: int
    segments: Sequence[tuple[Segment, int, int]]
    gold: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class BlockMade:
    """A block, and what is summed up over all blocks.

    Attributes
    ----------
    labelled : (raters,) how many of its items each labelled
    linked : (raters,) for each rater the first of those linked to it by items of this block
    known : names of items whose truth is known
    contradictions, n_contradictions : the first of them, and how many there are
    """

    block: Block
    labelled: np.ndarray
    linked: np.ndarray
    known: list[str]
    contradictions: list[Contradiction]
    n_contradictions: int


@dataclass(frozen=True)
class Grouping:
    """Makes blocks of buckets, in any process that sees the folder.

    Attributes
    ----------
    n_raters, n_classes : of the table, and of the truth
    only : number of the one class that is told apart from all others, or None
    keep_last : take the last of a rater's answers on an item, whatever the others are
    """

    folder: Path
    n_raters: int
    n_classes: int
    only: int | None
    keep_last: bool

    def __call__(self, task: BucketTask) -> BlockMade | None:
        """Make a block of a bucket; None of an empty one."""
        segments = [each for each in task.segments if each[0].n_answers]
        if not segments:
            return None
        names, first_row, found = self._read(segments)
        sorted_answers = table_loops(len(found)).group_answers(found.item, found.rater, found.label, len(names))
        wrong: list[Contradiction] = []
        count = 0

        def note(places: np.ndarray) -> InputError:
            nonlocal count
            count = len(places)
            for place in places[:MOST_SHOWN].tolist():
                item, rater = int(answers.item[place]), int(answers.rater[place])
                labels = int(answers.label[place]), int(answers.label[place + 1])
                wrong.append(Contradiction(int(first_row[item]), rater, names[item].as_py(), labels))
            return InputError("contradictions")

        answers = Answers(*sorted_answers)
        try:
            answers = drop_repeats(answers, None if self.keep_last else note)
        except InputError:
            answers = drop_repeats(answers, None)
        gold, known = self._gold(names, task.gold)
        if self.only is not None:
            answers = Answers(answers.item, answers.rater, (answers.label == self.only).astype(np.int16))
            gold = np.where(gold == MISSING_LABEL, gold, gold == self.only).astype(np.int16)
        home = self.folder / f"block-{task.number:05d}"
        block = Block(home, len(names), len(answers), self.n_raters, self.n_classes, bool(known))
        offsets, text = _name_bytes(names)
        block.write(
            cells=answer_cells(answers, self.n_raters, self.n_classes),
            counts=np.bincount(answers.item, minlength=len(names)).astype(np.uint32),
            rows=first_row, offsets=offsets, names=text,
            **({"gold": gold} if known else {}),
        )  # fmt: skip
        labelled = np.bincount(answers.rater, minlength=self.n_raters)
        linked = row_loops(len(answers)).first_linked(answers.item, answers.rater, self.n_raters)
        return BlockMade(block, labelled, linked, known, wrong, count)

    def _read(self, segments: Sequence[tuple[Segment, int, int]]) -> tuple[pa.Array, np.ndarray, Answers]:
        """Names of the items in the order of their first rows, these rows, and all answers as they stand."""
        with READING_HEADERS:
            rater_of = np.load(self.folder / "raters.npy", mmap_mode="r")
            label_of = np.load(self.folder / "labels.npy", mmap_mode="r")
        contents = [read_segment(segment) for segment, _, _ in segments]
        before = np.cumsum([0] + [len(content.length) for content in contents])
        length, text = (np.concatenate([getattr(content, part) for content in contents]) for part in ("length", "text"))
        encoded = _strings(np.append(0, np.cumsum(length, dtype=np.int64)), text).dictionary_encode()
        code = encoded.indices.to_numpy(zero_copy_only=False)
        n_items = len(encoded.dictionary)
        first_row = np.empty(n_items, dtype=np.int64)
        first_row[code[::-1]] = np.concatenate([content.first_row for content in contents])[::-1]
        item = np.concatenate([code[content.name + start] for content, start in zip(contents, before)])
        rater = np.concatenate([rater_of[each.rater + at] for each, (_, at, _) in zip(contents, segments)])
        label = np.concatenate([label_of[each.label + at] for each, (_, _, at) in zip(contents, segments)])
        found = Answers(item.astype(np.int32, copy=False), rater, label)
        return encoded.dictionary, first_row, found

    def _gold(self, names: pa.Array, gold: dict[str, int]) -> tuple[np.ndarray, list[str]]:
        """True classes of the items (items,), -1 = unknown; and the names of those that are known."""
        numbers = np.full(len(names), MISSING_LABEL, dtype=np.int16)
        if not gold:
            return numbers, []
        position = {name: place for place, name in enumerate(names.to_pylist())}
        known = [name for name in gold if name in position]
        for name in known:
            numbers[position[name]] = gold[name]
        return numbers, known


def _strings(offsets: np.ndarray, text: np.ndarray) -> pa.Array:
    """An array of names, of any length together, from where they begin (names + 1,) and their bytes."""
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets, dtype=np.int64)), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.large_string(), len(offsets) - 1, buffers)


def _name_bytes(names: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    _, offsets, text = names.buffers()
    begin = np.frombuffer(offsets, dtype=np.int64)[names.offset : names.offset + len(names) + 1]
    return begin - begin[0], np.frombuffer(text, dtype=np.uint8)[begin[0] : begin[-1]]
