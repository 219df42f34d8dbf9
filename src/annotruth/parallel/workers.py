"""Workers: the same job done on each of many cases, here, in other processes, or on a Dask cluster.

Whoever does the work, answers come in the order of the tasks, and a worker that is killed loses nothing: what it had in
hand is done again.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from typing import Any

from annotruth.errors import AnnotruthError, InputError
from annotruth.parallel import MapFunction
from annotruth.parallel.threads import thread_count, threads

_MOST_TASKS = 8  # per errand: enough to hide the way there, few enough for a lively progress bar
_MOST_DEATHS = 3  # over one errand
_ANSWER_WITHIN = 10  # seconds
_WAY = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
_KEEP_DYING = (
    "Worker processes keep dying, mostly for lack of memory. Use fewer at a time, or workers with more memory."
)


def open_workers(jobs: int = 1, scheduler: str | None = None) -> AbstractContextManager[MapFunction]:
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
    """Processes with a pipe to each of them, and here a thread that waits for each.

    A process that dies closes its pipe, even in the middle of an answer, so nobody waits for it for ever. With a queue
    that all of them share (as in ``ProcessPoolExecutor``) one that is killed while it writes stops the others, too.
    """

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._threads = max(1, thread_count() // jobs)
        self._waiting = ThreadPoolExecutor(jobs, thread_name_prefix="worker")
        self._idle: SimpleQueue[_Worker] = SimpleQueue()

    def __enter__(self) -> MapFunction:
        return self._across

    def __exit__(self, *_: object) -> None:
        self._waiting.shutdown(wait=True, cancel_futures=True)
        while not self._idle.empty():
            self._idle.get().end()

    def _across(self, work: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        parts = _parts(tasks, self._jobs)
        futures = [self._waiting.submit(self._do, partial(_run, work, part, self._threads)) for part in parts]
        try:
            for future in futures:
                yield from future.result()
        finally:
            for future in futures:
                future.cancel()

    def _do(self, errand: Callable[[], list[Any]]) -> list[Any]:
        for _ in range(1 + _MOST_DEATHS):
            worker = self._next_worker()
            try:
                answers = worker.do(errand)
            except _Died:
                worker.end()
            except BaseException:
                self._idle.put(worker)
                raise
            else:
                self._idle.put(worker)
                return answers
        raise AnnotruthError(_KEEP_DYING)

    def _next_worker(self) -> _Worker:
        try:
            return self._idle.get_nowait()
        except Empty:
            return _Worker()


class _Died(Exception):
    """A worker process ended before it had answered."""


class _Worker:
    """A process that does one errand after another."""

    def __init__(self) -> None:
        # A fork server imports everything once, for all workers. Forking this process, with its threads, is not safe.
        context: Any = multiprocessing.get_context(_WAY)
        if _WAY == "forkserver":
            context.set_forkserver_preload(["annotruth.fusion.folder"])
        self._pipe, its_end = context.Pipe()
        self._process = context.Process(target=_serve, args=(its_end,), daemon=True)
        self._process.start()
        its_end.close()  # from now on it is open in that process only

    def do(self, errand: Callable[[], list[Any]]) -> list[Any]:
        request = pickle.dumps(errand)
        try:
            self._pipe.send_bytes(request)
            answer = self._pipe.recv_bytes()
        except (EOFError, OSError) as error:
            raise _Died from error
        answers, failure = pickle.loads(answer)
        if failure is not None:
            raise failure
        return answers

    def end(self) -> None:
        self._pipe.close()
        self._process.join()


def _serve(pipe: Connection) -> None:
    """Do what comes through the pipe until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits
    end_with_parent()
    while True:
        try:
            request = pipe.recv_bytes()
        except EOFError:
            return
        pipe.send_bytes(_answer(request))


def _answer(request: bytes) -> bytes:
    try:
        return pickle.dumps((pickle.loads(request)(), None))
    except Exception as error:
        error.add_note("In a worker process:\n" + traceback.format_exc())
        return pickle.dumps((None, error))


def end_with_parent() -> None:
    """Let this process end when the one that started it does, even if that is killed."""
    parent = multiprocessing.parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


@contextmanager
def _cluster(address: str) -> Iterator[MapFunction]:
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
