"""First pass over a table that is not in memory: names become numbers, and answers go into buckets of items.

Whoever reads a part of the table writes its answers down, bucket by bucket, with the names of their items. All answers
on an item are in one bucket, because its number follows from the item's name.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from annotruth.fusion._em import table_loops
from annotruth.io.table_parts import BadPart, PartColumn, PartError, TablePart, read_part
from annotruth.io.writing import atomic

FIRST_ROW_BITS = 40
"""An item's first row is told by the number of the part, and the row in it in so many bits."""


class Segment(NamedTuple):
    """Where a bucket's answers lie in a piece, and how many names, answers and bytes of names there are."""

    path: Path
    offset: int
    n_names: int
    n_answers: int
    n_bytes: int


class SegmentContent(NamedTuple):
    """What a segment holds: names of items with their first rows, and answers that point at the names.

    Attributes
    ----------
    length, text : (names,) bytes of each name, and all of them; in the order of their first rows
    first_row : (names,) int64, increasing
    name, rater, label : (answers,) int32, positions in the names here, and in the part's raters and labels
    """

    length: np.ndarray
    first_row: np.ndarray
    name: np.ndarray
    rater: np.ndarray
    label: np.ndarray
    text: np.ndarray


_TYPES = SegmentContent(np.uint32, np.int64, np.int32, np.int32, np.int32, np.uint8)  # type: ignore[arg-type]


@dataclass(frozen=True)
class PartPieces:
    """What was written of a part.

    Attributes
    ----------
    n_rows : how many answers there were
    raters, labels : names, in the order of the numbers that stand for them in the pieces
    pieces : for each piece the segments of all buckets
    """

    n_rows: int
    raters: list[str]
    labels: list[str]
    pieces: list[list[Segment]]


def spill_part(folder: Path, n_buckets: int, task: tuple[int, TablePart]) -> PartPieces | PartError:
    """Read a part and write it into a folder, as pieces; give them, or why the part cannot be read."""
    number, part = task
    raters: dict[str, int] = {}
    labels: dict[str, int] = {}
    pieces: list[list[Segment]] = []
    n_rows = 0
    try:
        for columns in read_part(part):
            rater, label = _numbered(columns["rater"], raters), _numbered(columns["label"], labels)
            path = folder / f"piece-{number:06d}-{len(pieces):04d}.bin"
            first_row = (number << FIRST_ROW_BITS) + n_rows
            pieces.append(_write_piece(path, columns["item"], rater, label, first_row, n_buckets))
            n_rows += len(rater)
    except BadPart as error:
        return error.args[0]
    return PartPieces(n_rows, list(raters), list(labels), pieces)


def read_segment(segment: Segment) -> SegmentContent:
    """Read a bucket's share of a piece."""
    sizes = _sizes(segment.n_names, segment.n_answers, segment.n_bytes)
    with segment.path.open("rb") as file:
        file.seek(segment.offset)
        return SegmentContent(*(np.fromfile(file, dtype, size) for dtype, size in zip(_TYPES, sizes)))


def bucket_numbers(names: pa.Array, n_buckets: int) -> np.ndarray:
    """Which bucket each name (names,) goes to; the same on every machine.

    Examples
    --------
    >>> bucket_numbers(pa.array(["a", "b", "a"]), 4)
    array([3, 1, 3], dtype=uint16)
    """
    offsets, text = _name_bytes(names)
    return (table_loops(len(names)).hash_names(offsets, text) % np.uint32(n_buckets)).astype(np.uint16)


def _numbered(column: PartColumn, known: dict[str, int]) -> np.ndarray:
    """The rows' numbers (rows,) in the names known so far, to which new ones are added."""
    names = column.names.to_pylist()
    numbers = [-1 if name is None else known.setdefault(name, len(known)) for name in names]
    return np.array(numbers, dtype=np.int32)[column.codes]


def _sizes(n_names: int, n_answers: int, n_bytes: int) -> SegmentContent:
    return SegmentContent(n_names, n_names, n_answers, n_answers, n_answers, n_bytes)  # type: ignore[arg-type]


def _name_bytes(names: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Where names begin (names + 1,), and all their bytes."""
    _, offsets, text = names.buffers()
    begin = np.frombuffer(offsets, dtype=np.int32)[names.offset : names.offset + len(names) + 1]
    return begin, np.frombuffer(text, dtype=np.uint8) if text is not None else np.empty(0, dtype=np.uint8)


def _write_piece(
    path: Path, item: PartColumn, rater: np.ndarray, label: np.ndarray, first_row: int, n_buckets: int
) -> list[Segment]:
    n_rows = len(item.codes)
    first = np.full(len(item.names), n_rows, dtype=np.int64)
    first[item.codes[::-1]] = np.arange(n_rows - 1, -1, -1)  # what is written last stays: the first row
    used = np.argsort(first, kind="stable")[: int((first < n_rows).sum())]
    bucket = bucket_numbers(item.names.take(pa.array(used)), n_buckets)
    order = np.argsort(bucket, kind="stable")  # of names, by bucket, then first row
    names, used, bucket = item.names.take(pa.array(used[order])), used[order], bucket[order]
    name_edge = np.searchsorted(bucket, np.arange(n_buckets + 1))
    place, bucket_of = np.empty(len(first), dtype=np.int32), np.empty(len(first), dtype=np.uint16)
    place[used], bucket_of[used] = np.arange(len(used)) - name_edge[bucket], bucket
    answer_bucket = bucket_of[item.codes]
    answer_order = np.argsort(answer_bucket, kind="stable")
    answer_edge = np.append(0, np.cumsum(np.bincount(answer_bucket, minlength=n_buckets)))
    begin, text = _name_bytes(names)
    name, rater, label = place[item.codes[answer_order]], rater[answer_order], label[answer_order]
    length, rows = np.diff(begin).astype(np.uint32), first[used] + first_row
    segments, offset = [], 0
    with atomic(path) as temporary, temporary.open("wb") as file:
        for number in range(n_buckets):
            a, b = (int(edge) for edge in name_edge[number : number + 2])
            answers = slice(*(int(edge) for edge in answer_edge[number : number + 2]))
            content = SegmentContent(
                length[a:b], rows[a:b], name[answers], rater[answers], label[answers], text[begin[a] : begin[b]]
            )
            for values, dtype in zip(content, _TYPES):
                file.write(np.ascontiguousarray(values, dtype=dtype).data)
            segments.append(Segment(path, offset, b - a, answers.stop - answers.start, len(content.text)))
            offset = file.tell()
    return segments
