"""The truth of a table that is not in memory: posteriors block by block, then rows in the order of the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from annotruth.fusion.base import FusionEstimator
from annotruth.fusion.em import best_classes
from annotruth.fusion.state import FusionState
from annotruth.fusion.stream.blocks import Block
from annotruth.io.tables import truth_rows
from annotruth.io.writing import atomic
from annotruth.parallel.threads import map_in_threads

_MAX_NUMBERS = 2**24  # of posteriors at a time
_ITEMS_AT_A_TIME, _SAMPLED = 2**19, 128


@dataclass(frozen=True)
class Decision:
    """Tells a block's truth, in any process: labels and probabilities are written beside its answers."""

    estimator: FusionEstimator
    state: FusionState

    def __call__(self, block: Block) -> None:
        """Write labels (items,) int16 and probabilities (items, classes) float32."""
        size = max(1, _MAX_NUMBERS // block.n_classes)
        labels = np.empty(block.n_items, dtype=np.int16)
        probabilities = np.empty((block.n_items, block.n_classes), dtype=np.float32)
        for first in range(0, block.n_items, size):
            last = min(first + size, block.n_items)
            posterior = self.estimator.posterior(block.votes(first, last), self.state)
            labels[first:last], probabilities[first:last] = best_classes(posterior), posterior
        block.write(labels=labels, probabilities=probabilities)


def write_truth(
    path: Path, blocks: Sequence[Block], classes: Sequence[str], n_threads: int, tell: Callable[[int, int], None]
) -> Path:
    """Write what :class:`Decision` left as one CSV file, items in the order in which the table first names them.

    Parameters
    ----------
    tell : called with the stretches of the table that are written, and how many there are
    """
    edges = _edges(blocks)
    places = np.stack([np.searchsorted(block.read("rows"), edges) for block in blocks])  # (blocks, edges)

    def stretch(number: int) -> bytes:
        parts = [
            _Rows.of(block, int(first), int(last))
            for block, first, last in zip(blocks, places[:, number], places[:, number + 1])
            if first < last
        ]
        order = np.argsort(np.concatenate([part.first_row for part in parts]))
        names = pa.concat_arrays([part.names for part in parts]).take(pa.array(order)).cast(pa.string())
        labels = np.concatenate([part.labels for part in parts])[order]
        probabilities = np.concatenate([part.probabilities for part in parts])[order]
        return truth_rows(names, classes, labels, probabilities, with_head=number == 0)

    with atomic(path) as temporary, temporary.open("wb") as file:
        for number, text in enumerate(map_in_threads(stretch, range(len(edges) - 1), n_threads)):
            file.write(text)
            tell(number + 1, len(edges) - 1)
    return path


@dataclass(frozen=True)
class _Rows:
    """Some items of a block with their truth."""

    names: pa.Array
    first_row: np.ndarray
    labels: np.ndarray
    probabilities: np.ndarray

    @classmethod
    def of(cls, block: Block, first: int, last: int) -> _Rows:
        size = block.n_classes
        probabilities = block.read("probabilities", first * size, last * size).reshape(-1, size)
        return cls(
            block.names(first, last), block.read("rows", first, last), block.read("labels", first, last), probabilities
        )


def _edges(blocks: Sequence[Block]) -> np.ndarray:
    """First rows at which to cut the table into stretches of about as many items, however blocks share them."""
    sampled = np.sort(np.concatenate([block.read("rows")[::_SAMPLED] for block in blocks]))
    size = min(_ITEMS_AT_A_TIME, _MAX_NUMBERS // blocks[0].n_classes)
    inner = sampled[:: max(1, size // _SAMPLED)][1:]
    return np.concatenate([[0], inner, [np.iinfo(np.int64).max]])
