"""Sums over the blocks of a table: what Dawid-Skene's iterations need of answers that are not in memory.

Blocks are shared out among lanes, each of which adds up its own; the lanes' sums are then added in order. Which lanes
there are depends on the table alone, so that the same table gives the same bits whoever does the work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from annotruth.fusion._em import PADDING, row_loops
from annotruth.fusion.em import by_label, by_truth, log_of, unrolled_classes
from annotruth.fusion.one_coin import VoteCoins
from annotruth.fusion.stream.blocks import Block
from annotruth.fusion.votes import Votes
from annotruth.io.writing import atomic
from annotruth.parallel import MapFunction
from annotruth.parallel.threads import READING_HEADERS

_MAX_LANES, _MAX_LANE_BYTES = 16, 2**28

Lane = tuple[Block, ...]


class BlockSums:
    """Sums over blocks, by whoever ``across`` gives the lanes to. See :class:`~annotruth.fusion.state.StreamedVotes`.

    Parameters
    ----------
    folder : where parameters are written, for those who add up
    tell : called with how often all blocks have been gone over
    """

    def __init__(
        self,
        blocks: Sequence[Block],
        raters: tuple[str, ...],
        rater_groups: np.ndarray,
        labelled: np.ndarray,
        across: MapFunction,
        folder: Path,
        tell: Callable[[int], None],
    ) -> None:
        self.raters, self.rater_groups, self.labelled = raters, rater_groups, labelled
        self.n_classes = blocks[0].n_classes
        self.total = float(sum(block.n_items for block in blocks))
        self.n_answers = float(sum(block.n_answers for block in blocks))
        self._across, self._folder, self._tell, self._rounds = across, folder, tell, 0
        affordable = _MAX_LANE_BYTES // (8 * len(raters) * self.n_classes**2)
        count = max(1, min(_MAX_LANES, len(blocks), affordable))
        edges = np.linspace(0, len(blocks), count + 1).astype(int)
        self._lanes = [tuple(blocks[a:b]) for a, b in pairwise(edges)]

    def vote_shares(self) -> tuple[np.ndarray, np.ndarray]:
        counts, classes = self._run(_share_lane)
        return by_truth(counts, len(self.raters), self.n_classes), classes

    def __call__(self, prior: np.ndarray, confusion: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        seen = by_label(confusion)
        np.log(seen, out=seen)
        counts, classes, likelihood = self._run(_expect_lane, seen=seen, log_prior=log_of(prior)[None])
        return by_truth(counts, len(self.raters), self.n_classes), classes, float(likelihood)

    def add_up(self, work: Callable[[Votes], tuple[np.ndarray, ...]]) -> list[np.ndarray]:
        return self._run(partial(_add_up_lane, work))

    def coins(self) -> BlockCoins:
        return BlockCoins(self)

    def _run(self, work: Callable[..., tuple[Any, ...]], **parameters: np.ndarray) -> list[np.ndarray]:
        """Have lanes added up under parameters, and give the sums of all.

        Parameters go by a file: of many raters they are large, and every lane needs them.
        """
        file = self._folder / f"parameters-{self._rounds}.npz"
        if parameters:
            with atomic(file) as temporary:
                np.savez(temporary, **parameters)  # type: ignore[arg-type]
        total: list[Any] = []
        for found in self._across(partial(work, file if parameters else None), self._lanes):
            total = [np.asarray(value) + 0.0 for value in found] if not total else _add(total, found)
        file.unlink(missing_ok=True)
        self._rounds += 1
        self._tell(self._rounds)
        return total


class BlockCoins:
    """Sums of the model with one number per rater. See :class:`~annotruth.fusion.one_coin.CoinSums`."""

    def __init__(self, sums: BlockSums) -> None:
        self._sums, self.n_classes, self.total = sums, sums.n_classes, sums.labelled
        self.n_items, self.n_answers = sums.total, sums.n_answers

    def shares(self) -> tuple[np.ndarray, np.ndarray]:
        right, classes = self._sums.add_up(_coin_shares)
        return right, classes

    def __call__(self, prior: np.ndarray, skill: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        right, classes, likelihood = self._sums.add_up(partial(_coin_sums, prior, skill, error))
        return right, classes, float(likelihood)


def _add(total: list[Any], more: Sequence[Any]) -> list[Any]:
    return [np.add(one, other, out=one if one.ndim else None) for one, other in zip(total, more)]


def _coin_shares(votes: Votes) -> tuple[np.ndarray, ...]:
    return VoteCoins(votes).shares()


def _coin_sums(prior: np.ndarray, skill: np.ndarray, error: np.ndarray, votes: Votes) -> tuple[np.ndarray, ...]:
    return VoteCoins(votes)(prior, skill, error)  # type: ignore[return-value]


# -- what is done with a lane, in any process --------------------------------------------------------------------


def _add_up_lane(
    work: Callable[[Votes], tuple[np.ndarray, ...]], file: Path | None, lane: Lane
) -> tuple[np.ndarray, ...]:
    total: list[Any] = []
    for block in lane:
        found = work(block.votes())
        total = [np.asarray(value) + 0.0 for value in found] if not total else _add(total, found)
    return tuple(total)


def _share_lane(file: Path | None, lane: Lane) -> tuple[np.ndarray, np.ndarray]:
    n_raters, n_classes = lane[0].n_raters, lane[0].n_classes
    counts, classes = np.zeros(n_raters * n_classes**2 + PADDING), np.zeros(n_classes + PADDING)
    for block in lane:
        found = block.load()
        start, cell, weight, gold = found
        row_loops(len(cell)).share_rows(
            0, block.n_items, start, cell, block.labels(found), weight, gold, counts, classes, n_classes
        )
    return counts[:-PADDING], classes[:n_classes]


def _expect_lane(file: Path, lane: Lane) -> tuple[np.ndarray, np.ndarray, float]:
    with READING_HEADERS, np.load(file) as parameters:
        seen, log_prior = parameters["seen"], parameters["log_prior"]
    n_classes, likelihood = log_prior.shape[1], 0.0
    counts, classes = np.zeros(len(seen) + PADDING), np.zeros(n_classes + PADDING)
    for block in lane:
        start, cell, weight, gold = block.load()
        likelihood += row_loops(len(cell)).expect_rows(
            0, block.n_items, start, cell, weight, gold, log_prior, seen, counts, classes,
            unrolled_classes(len(cell), n_classes),
        )  # fmt: skip
    return counts[:-PADDING], classes[:n_classes], likelihood
