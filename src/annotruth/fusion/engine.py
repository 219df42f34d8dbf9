"""Workers: the same job done on each of many cases, here, in other processes, or on a Dask cluster.

Whoever does the work, answers come in the order of the tasks, and a worker that is killed loses nothing: what it had in
hand is done again.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

from annotruth.errors import AnnotruthError, InputError
from annotruth.fusion.threads import thread_count, threads
from annotruth.io.survey import Across

_MOST_TASKS = 8  # per errand: enough to hide the way there, few enough for a lively progress bar
_MOST_DEATHS = 3  # while waiting for one errand
_ANSWER_WITHIN = 10  # seconds
_KEEP_DYING = (
    "Worker processes keep dying, mostly for lack of memory. Use fewer at a time, or workers with more memory."
)


def open_workers(jobs: int = 1, scheduler: str | None = None) -> AbstractContextManager[Across]:
    """Open workers for a ``with`` block: they persist until its end.

    Parameters
    ----------
    jobs : processes on this machine; 1 = this one. They share its cores as threads of the compiled loops
    scheduler : address of a Dask scheduler instead; every task gets one thread there

    Returns
    -------
    What gives, in a ``with`` statement, a stand-in for ``map``. Functions and tasks given to it must be picklable.

    Examples
    --------
    >>> with open_workers() as across:
    ...     list(across(len, ["one", "three"]))
    [3, 5]
    """
    if jobs < 1:
        raise InputError(f"The number of jobs must be at least 1, found {jobs}.")
    if scheduler is not None:
        if jobs > 1:
            raise InputError("Choose either jobs on this machine or a Dask cluster, not both.")
        return _cluster(scheduler)
    return nullcontext(map) if jobs == 1 else _Processes(jobs)


class _Processes:
    """A pool of processes that is made anew when one of them is killed."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._threads = max(1, thread_count() // jobs)
        self._pool = self._new_pool()

    def __enter__(self) -> Across:
        return self._across

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _new_pool(self) -> ProcessPoolExecutor:
        # A fork server imports everything once, for all workers. Forking this process, with its threads, is not safe.
        way = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
        context = multiprocessing.get_context(way)
        if way == "forkserver":
            context.set_forkserver_preload([f"{__package__}.folder"])
        return ProcessPoolExecutor(self._jobs, mp_context=context, initializer=_start_worker)

    def _across(self, work: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        errands = [partial(_run, work, part, self._threads) for part in _parts(tasks, self._jobs)]
        futures = [self._submit(errand) for errand in errands]
        for number in range(len(errands)):
            deaths = 0
            while (answers := _answers_unless_broken(futures[number])) is None:
                deaths += 1
                if deaths > _MOST_DEATHS:
                    raise AnnotruthError(_KEEP_DYING)
                for later in range(number, len(errands)):
                    if not _went_well(futures[later]):
                        futures[later] = self._submit(errands[later])
            yield from answers

    def _submit(self, errand: Callable[[], list[Any]]) -> Future[list[Any]]:
        try:
            return self._pool.submit(errand)
        except BrokenProcessPool:
            self._pool.shutdown(wait=False)
            self._pool = self._new_pool()
            return self._pool.submit(errand)


def _answers_unless_broken(future: Future[list[Any]]) -> list[Any] | None:
    try:
        return future.result()
    except BrokenProcessPool:
        return None


def _went_well(future: Future[list[Any]]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


def _start_worker() -> None:
    """Leave Ctrl-C to the process that waits, and end with it, even if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _cluster(address: str) -> Iterator[Across]:
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
        futures = [client.submit(_run, work, part, 1, pure=False) for part in _parts(tasks, slots)]
        for future in futures:
            try:
                yield from future.result()
            except KilledWorker as error:
                raise AnnotruthError(_KEEP_DYING) from error
            except ImportError as error:
                raise InputError(f"The cluster's workers lack annotruth or a part of it: {error}.") from error

    with client:
        yield across


def _run(work: Callable[[Any], Any], tasks: Sequence[Any], n_threads: int) -> list[Any]:
    with threads(n_threads):
        return [work(task) for task in tasks]


def _parts(tasks: Sequence[Any], n_workers: int) -> list[Sequence[Any]]:
    """Cut the tasks into errands, several for each worker so that all end at about the same time."""
    size = min(max(len(tasks) // (8 * max(n_workers, 1)), 1), _MOST_TASKS)
    return [tasks[first : first + size] for first in range(0, len(tasks), size)]
