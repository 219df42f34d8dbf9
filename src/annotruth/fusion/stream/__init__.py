"""Label tables larger than memory: Dawid-Skene, STAPLE and votes over answers that stay on disk.

The table is read once. Its names become numbers, and its answers go into buckets of items, on disk (:mod:`.pieces`).
Each bucket is then sorted by item (:mod:`.blocks`), and iterations go over the blocks: what a block adds to the
expected counts is added up (:mod:`.sums`), and no posterior is kept. At last posteriors are looked up block by block,
and written in the order of the table (:mod:`.results`). Threads share this work, or the workers of a Dask cluster that
see the same folders. It takes time and disk in proportion to the answers, and memory in proportion to the raters'
matrices.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from annotruth.data.annotations import Annotations
from annotruth.data.answers import Answers, name_classes
from annotruth.errors import AnnotruthError, InputError, shorten
from annotruth.fusion._em import row_loops
from annotruth.fusion.base import FusionEstimator
from annotruth.fusion.params import clone
from annotruth.fusion.stream.blocks import MOST_SHOWN, Block, BlockMade, BucketTask, Contradiction, Grouping
from annotruth.fusion.stream.pieces import PartPieces, bucket_numbers, spill_part
from annotruth.fusion.stream.results import Decision, write_truth
from annotruth.fusion.stream.sums import BlockSums
from annotruth.fusion.votes import Votes
from annotruth.io.table_parts import PartError, TablePart, count_rows, find_contradiction, find_parts, refuse_part
from annotruth.io.tables import read_truth
from annotruth.parallel import MapFunction
from annotruth.parallel.threads import map_in_threads, thread_count
from annotruth.validation import one_of

MAX_ROWS_IN_MEMORY = 20_000_000
"""Rows of a table beyond which it is read in parts, by methods that can."""
_BUCKET_ANSWERS, _MAX_BUCKETS = 2**20, 512
_MAX_READERS = 4  # parts that are in memory at a time
_WORK = ".annotruth-stream-"

Progress = Callable[[str, int, int], None]


class StreamedTable:
    """One fusion of a label table that stays on disk.

    Parameters
    ----------
    source : a CSV or Parquet file, or a folder of Parquet files
    truth : a table of classes that belong to the labels' too; ``gold`` says whether its items are known truth
    output : folder for the results; a hidden folder in it holds what is read, until the end
    duplicates : as :func:`annotruth.load` takes it
    cluster : workers of a Dask cluster, who see the same folders; by default threads of this process
    """

    def __init__(
        self,
        source: Path,
        output: Path,
        *,
        truth: Path | None = None,
        gold: bool = False,
        duplicates: str = "error",
        cluster: MapFunction | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._source, self._output, self._cluster = source, output, cluster
        self._truth = {} if truth is None else read_truth(truth)
        self._gold, self._duplicates = gold, one_of(duplicates, ("error", "keep-last"), "way with duplicates")
        self._progress = progress or (lambda stage, done, total: None)

    def fuse(self, estimator: FusionEstimator, check: Callable[[FusionEstimator, Annotations], None], to: str) -> int:
        """Fit an estimator, and write each item's truth into a file of the output folder; give the number of items.

        ``check`` refuses settings that do not go with the raters and classes, once these are known.
        """
        with _work_folder(self._output) as folder:
            parts = find_parts(self._source)
            n_buckets = int(np.clip(-(-count_rows(self._source) // _BUCKET_ANSWERS), 1, _MAX_BUCKETS))
            spilt = self._spill(folder, parts, n_buckets)
            outline = self._outline(folder, spilt)
            check(estimator, outline)
            blocks, raters = self._group(folder, parts, spilt, estimator, outline, n_buckets)
            rounds = getattr(estimator, "max_iter", 1)
            sums = BlockSums(
                blocks, outline.raters, raters.groups(), raters.labelled.astype(np.float64),
                self._across(), folder, lambda done: self._progress("Estimating", min(done, rounds), rounds),
            )  # fmt: skip
            estimator.fit_sums(sums, outline, sums.labelled, self._gold_votes(estimator, outline))
            decide = Decision(clone(estimator), estimator.state_)
            for done, _ in enumerate(self._across()(decide, blocks), 1):
                self._progress("Deciding", done, len(blocks))
            write_truth(
                self._output / to, blocks, estimator.classes_, thread_count(), partial(self._progress, "Writing")
            )
            return int(sums.total)

    def _across(self, at_most: int | None = None) -> MapFunction:
        n_threads = thread_count() if at_most is None else min(at_most, thread_count())
        return self._cluster or partial(map_in_threads, n_threads=n_threads)

    def _spill(self, folder: Path, parts: Sequence[TablePart], n_buckets: int) -> list[PartPieces]:
        """Read all parts, and write their answers by bucket."""
        spilt: list[PartPieces] = []
        self._progress("Reading", 0, len(parts))
        tasks = list(enumerate(parts))
        for part, found in zip(parts, self._across(_MAX_READERS)(partial(spill_part, folder, n_buckets), tasks)):
            if isinstance(found, PartError):
                raise refuse_part(part, found, parts, [each.n_rows for each in spilt])
            spilt.append(found)
            self._progress("Reading", len(spilt), len(parts))
        if not sum(each.n_rows for each in spilt):
            raise InputError(f"{self._source}: the table has a head but no row. Add one for each answer.")
        return spilt

    def _outline(self, folder: Path, spilt: Sequence[PartPieces]) -> Annotations:
        """Number raters and classes, and write what the parts' own numbers are in these; give the names."""
        raters: dict[str, int] = {}
        for each in spilt:
            for name in each.raters:
                raters.setdefault(name, len(raters))
        found = dict.fromkeys(name for each in spilt for name in each.labels)
        classes = name_classes([*found, *self._truth.values()])
        position = {name: number for number, name in enumerate(classes)}
        np.save(folder / "raters.npy", np.array([raters[name] for each in spilt for name in each.raters], np.int32))
        np.save(folder / "labels.npy", np.array([position[name] for each in spilt for name in each.labels], np.int16))
        # As long as all answers together, but of one number: what is checked is how many there are.
        n_rows = sum(each.n_rows for each in spilt)
        none = (np.broadcast_to(np.zeros(1, dtype), n_rows) for dtype in (np.int32, np.int32, np.int16))
        return Annotations(
            kind="labels", items=["any"], raters=tuple(raters), classes=classes, answers=Answers(*none)
        )  # fmt: skip

    def _group(
        self,
        folder: Path,
        parts: Sequence[TablePart],
        spilt: Sequence[PartPieces],
        estimator: FusionEstimator,
        outline: Annotations,
        n_buckets: int,
    ) -> tuple[list[Block], _Raters]:
        """Make every bucket a block; give them, and what all of them say of the raters."""
        names, only = estimator.truth_classes(outline.classes)
        grouping = Grouping(folder, len(outline.raters), len(names), only, self._duplicates == "keep-last")
        gold = self._gold_by_bucket(outline, n_buckets)
        starts = np.cumsum([(0, 0)] + [(len(each.raters), len(each.labels)) for each in spilt], axis=0).tolist()
        tasks = [
            BucketTask(
                number,
                [(piece[number], *start) for each, start in zip(spilt, starts) for piece in each.pieces],
                gold[number],
            )
            for number in range(n_buckets)
        ]
        blocks: list[Block] = []
        raters = _Raters(len(outline.raters))
        contradictions: list[Contradiction] = []
        count, known = 0, set[str]()
        for done, made in enumerate(self._across(_MAX_READERS)(grouping, tasks), 1):
            if made is not None:
                blocks.append(made.block)
                raters.add(made)
                known.update(made.known)
                contradictions += made.contradictions
                count += made.n_contradictions
            self._progress("Sorting", done, n_buckets)
        for each in spilt:
            for piece in each.pieces:
                piece[0].path.unlink(missing_ok=True)
        if count:
            raise self._contradiction(parts, contradictions, count, outline)
        strangers = sorted(set(self._truth) - known) if self._gold else []
        if strangers:
            raise InputError(f"There are gold labels for items that do not exist: {shorten(strangers)}.")
        return blocks, raters

    def _gold_by_bucket(self, outline: Annotations, n_buckets: int) -> list[dict[str, int]]:
        """Known classes by item, in the bucket where the item will be."""
        gold: list[dict[str, int]] = [{} for _ in range(n_buckets)]
        if self._gold and self._truth:
            position = {name: number for number, name in enumerate(outline.classes)}
            names = pa.array(list(self._truth), pa.string())
            for number, (name, label) in zip(bucket_numbers(names, n_buckets).tolist(), self._truth.items()):
                gold[number][name] = position[label]
        return gold

    def _gold_votes(self, estimator: FusionEstimator, outline: Annotations) -> Votes:
        """A row without answers for every class of which there is known truth."""
        known = sorted(set(self._truth.values())) if self._gold else []
        classes, only = estimator.truth_classes(outline.classes)
        numbers = np.array([outline.classes.index(name) for name in known], dtype=np.int16)
        none = Answers(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int16))
        gold = numbers if only is None else (numbers == only).astype(np.int16)
        return Votes.from_answers(none, len(gold), len(outline.raters), len(classes), gold)

    def _contradiction(
        self, parts: Sequence[TablePart], found: Sequence[Contradiction], count: int, outline: Annotations
    ) -> InputError:
        """The error that reading the table whole would give, and where to look for the first of them."""
        first = min(found)
        rows = find_contradiction(parts, first.item, outline.raters[first.rater])
        listed = [
            f"{each.item} by {outline.raters[each.rater]} "
            f"({outline.classes[each.labels[0]]} and {outline.classes[each.labels[1]]})"
            for each in sorted(found)[:MOST_SHOWN]
        ]
        more = f" and {count - MOST_SHOWN} more" if count > MOST_SHOWN else ""
        return InputError(
            f"{self._source}: The same rater gave the same item different labels: {'; '.join(listed)}{more}. "
            "Remove the wrong rows, or accept the last of each: duplicates='keep-last', --duplicates keep-last. "
            f"The first of them: {' and '.join(rows)}."
        )


class _Raters:
    """What blocks say of the raters, as they come: how many items each labelled, and who is linked by common items."""

    def __init__(self, n_raters: int) -> None:
        self.labelled = np.zeros(n_raters, dtype=np.int64)
        self._every = np.arange(n_raters)
        self._linked = self._every

    def add(self, made: BlockMade) -> None:
        self.labelled += made.labelled
        # A rater and whoever either side links it to are pairs: answers on items of two.
        pairs = np.stack([np.tile(self._every, 2), np.concatenate([self._linked, made.linked])], axis=1).reshape(-1)
        item = np.repeat(np.arange(2 * len(self._every), dtype=np.int32), 2)
        self._linked = row_loops(len(pairs)).first_linked(item, pairs.astype(np.int32), len(self._every))

    def groups(self) -> np.ndarray:
        """Numbers (raters,) as :func:`~annotruth.fusion.identifiability.co_labelling_groups` gives them."""
        labelled, groups = self.labelled > 0, np.full(len(self._every), -1, dtype=np.int64)
        groups[labelled] = np.unique(self._linked[labelled], return_inverse=True)[1]
        return groups


def tidy(output: Path) -> None:
    """Remove what a fusion that was killed left of its work in the output folder; for the folder's only writer."""
    for folder in output.glob(f"{_WORK}*"):
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _work_folder(output: Path) -> Iterator[Path]:
    """A folder in the output folder, for as long as the body lasts; what goes wrong with the disk is told."""
    try:
        with tempfile.TemporaryDirectory(prefix=_WORK, dir=output, ignore_cleanup_errors=True) as name:
            yield Path(name)
    except OSError as error:
        raise AnnotruthError(
            f"{output}: answers could not be kept there while they were fused: {error.strerror or error}."
        ) from error
