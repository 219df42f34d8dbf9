"""The same job done on each of many cases by the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from annotruth.errors import AnnotruthError, InputError
from annotruth.parallel import WORKERS_KEEP_DYING, MapFunction, run_errand, split_tasks

_ANSWER_WITHIN = 10  # seconds


@contextmanager
def open_cluster(address: str) -> Iterator[MapFunction]:
    """Use the workers of a Dask scheduler as a stand-in for ``map`` in a ``with`` block; every task gets one thread."""
    try:
        from distributed import Client
        from distributed.scheduler import KilledWorker
    except ImportError as error:
        raise InputError("A Dask cluster needs Dask: pip install 'annotruth[dask]'.") from error
    try:
        client = Client(address, timeout=_ANSWER_WITHIN, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(
            f"No Dask scheduler answers at {address!r} ({error}). Give its address as in tcp://host:8786."
        ) from error

    def across(work: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        slots = sum(client.nthreads().values())
        futures = [client.submit(run_errand, work, part, 1, pure=False) for part in split_tasks(tasks, slots)]
        for future in futures:
            try:
                yield from future.result()
            except KilledWorker as error:
                raise AnnotruthError(WORKERS_KEEP_DYING) from error
            except ImportError as error:
                raise InputError(f"The cluster's workers lack annotruth or a part of it: {error}.") from error

    with client:
        yield across
