"""In which order items are learnt from, and in which batches, shared out between processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import BatchSampler, DataLoader, Sampler

from annotruth.training.datasets import Items


class EpochSampler(Sampler[int]):
    """A new order every epoch, that depends on the seed and the epoch alone, so that a resumed run goes on alike.

    Parameters
    ----------
    taken : an epoch that was begun before, and how many of its items were taken then: they are not given again
    """

    def __init__(self, cases: Items, seed: int, taken: tuple[int, int] = (0, 0)) -> None:
        self.cases, self.seed, self.taken = cases, seed, taken
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = self.cases.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        order = np.random.default_rng([self.seed, self.epoch]).permutation(len(self))
        epoch, taken = self.taken
        return iter(order[taken if self.epoch == epoch else 0 :].tolist())

    def __len__(self) -> int:
        return len(self.cases) * self.cases.repeats


class SharedBatches(BatchSampler):
    """The batches of an order of items, each shared out between processes: together they see what one would.

    One item that would be left over at the end joins the last batch: batch norm refuses a single value.

    Examples
    --------
    >>> [list(SharedBatches(range(6), 4, process, processes=2)) for process in (0, 1)]
    [[[0, 2], [4]], [[1, 3], [5]]]
    >>> list(SharedBatches(range(5), 4))
    [[0, 1, 2, 3, 4]]
    """

    def __init__(self, order: Iterable[int], batch_size: int, process: int = 0, processes: int = 1) -> None:
        super().__init__(order, batch_size, drop_last=False)
        self.process, self.processes = process, processes

    def __len__(self) -> int:
        left_over = len(self.sampler) % self.batch_size  # type: ignore[arg-type]
        return super().__len__() - (left_over == 1 and len(self.sampler) > self.batch_size > 1)  # type: ignore[arg-type]

    def _whole(self) -> Iterator[list[int]]:
        """Batches of all processes together."""
        before: list[int] = []
        for batch in super().__iter__():
            if before and len(batch) == 1 < self.batch_size:
                before += batch
            else:
                if before:
                    yield before
                before = batch
        if before:
            yield before

    def __iter__(self) -> Iterator[list[int]]:
        for batch in self._whole():
            # All processes take every step together: one left without an item takes another's again.
            yield batch[self.process :: self.processes] or [batch[self.process % len(batch)]]


def loader(
    cases: Items, batch_size: int, order: Iterable[int] | None = None, process: int = 0, processes: int = 1
) -> DataLoader:
    """Batches in order, or in the given order, or a process's share of them.

    Items come from memory, so no worker processes are needed.
    """
    batches = SharedBatches(range(len(cases)) if order is None else order, batch_size, process, processes)
    # A generator of its own, or the loader would draw from the user's random numbers.
    return DataLoader(cases, batch_sampler=batches, collate_fn=_as_it_is, generator=torch.Generator())


def _as_it_is(batch: Any) -> Any:
    return batch
