"""Worker processes: the same job done on each of many cases, here or in other processes of this machine.

A worker that is killed loses nothing: what it had in hand is done again. Workers end with the process that started
them, even if that is killed.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from typing import Any, Self

from annotruth.errors import AnnotruthError, InputError
from annotruth.parallel import WORKERS_KEEP_DYING, MapFunction, run_errand, split_tasks
from annotruth.parallel.threads import thread_count, threads

_MAX_DEATHS = 3  # over one errand
_USUAL_START = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"


def open_workers(jobs: int = 1, preload: Sequence[str] = ()) -> AbstractContextManager[MapFunction]:
    """Open workers for a ``with`` block: they persist until its end.

    Parameters
    ----------
    jobs : processes on this machine; 1 = this one. They share its cores as threads of the compiled loops
    preload : modules that the processes need, to be imported once for all of them where the system can do that

    Returns
    -------
    What gives, in a ``with`` statement, a stand-in for ``map``. Functions and tasks given to it must be picklable.
    Tasks are dealt in turns: those at one place of several lists go to the same process, and find what it has kept.

    Examples
    --------
    >>> with open_workers() as across:
    ...     list(across(len, ["one", "three"]))
    [3, 5]
    """
    if jobs < 1:
        raise InputError(f"The number of jobs must be at least 1, found {jobs}.")
    return nullcontext(map) if jobs == 1 else _dealing(jobs, preload)


def prepare_workers(preload: Sequence[str]) -> bool:
    """Let what workers will need be imported from now on, beside other work; give whether this system can do that."""
    if _USUAL_START != "forkserver":
        return False
    from multiprocessing import forkserver

    forkserver.set_forkserver_preload([__name__, *preload])
    forkserver.ensure_running()
    return True


@contextmanager
def _dealing(jobs: int, preload: Sequence[str]) -> Iterator[MapFunction]:
    with threads(max(1, thread_count() // jobs)), ExitStack() as opened:
        players = [opened.enter_context(Processes(1, preload=preload)) for _ in range(jobs)]

        def across(work: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
            answers = [player.map(work, tasks[first::jobs]) for first, player in enumerate(players)]
            return (next(answers[place % jobs]) for place in range(len(tasks)))

        yield across


class Processes:
    """Processes with a pipe to each of them, and here a thread that waits for each.

    A process that dies closes its pipe, even in the middle of an answer, so nobody waits for it for ever. With a queue
    that all of them share (as in ``ProcessPoolExecutor``) one that is killed while it writes stops the others, too.

    Parameters
    ----------
    jobs : how many
    fresh : start each as a new interpreter; otherwise they are forked, where the system can do that, from a server that
        has imported ``preload``
    environment : variables that only the processes see; they need ``fresh``
    """

    def __init__(
        self,
        jobs: int,
        *,
        preload: Sequence[str] = (),
        fresh: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._jobs = jobs
        self._threads = max(1, thread_count() // jobs)
        self._waiting = ThreadPoolExecutor(jobs, thread_name_prefix="worker")
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        self._start = partial(_Worker, "spawn" if fresh else _USUAL_START, list(preload), dict(environment or {}))
        self._all: list[_Worker] = []
        self._given_up = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is not None:  # nobody waits for the answers any more
            self._given_up = True
            for worker in list(self._all):
                worker.kill()
        self._waiting.shutdown(wait=True, cancel_futures=True)
        while not self._idle.empty():
            self._idle.get().end()

    def map(self, work: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        """Give the answers in the order of the tasks."""
        futures = [self._submit(work, part) for part in split_tasks(tasks, self._jobs)]  # they begin at once

        def answers() -> Iterator[Any]:
            with _cancelling(futures):
                for future in futures:
                    yield from future.result()

        return answers()

    def as_completed(self, work: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Give each answer with the number of its task, as they come; the first error ends it."""
        number = {self._submit(work, [task]): index for index, task in enumerate(tasks)}
        with _cancelling(list(number)):
            for future in as_completed(number):
                yield number[future], future.result()[0]

    def _submit(self, work: Callable[[Any], Any], tasks: Sequence[Any]) -> Future[list[Any]]:
        return self._waiting.submit(self._do, partial(run_errand, work, tasks, self._threads))

    def _do(self, errand: Callable[[], list[Any]]) -> list[Any]:
        for _ in range(1 + _MAX_DEATHS):
            if self._given_up:
                break
            worker = self._next_worker()
            if self._given_up:  # since then: whoever gave up may not have met this one
                worker.kill()
            try:
                answers = worker.do(errand)
            except _Died:
                worker.end()
                self._all.remove(worker)
            except BaseException:
                self._idle.put(worker)
                raise
            else:
                self._idle.put(worker)
                return answers
        raise AnnotruthError(WORKERS_KEEP_DYING)

    def _next_worker(self) -> _Worker:
        try:
            return self._idle.get_nowait()
        except Empty:
            self._all.append(self._start())
            return self._all[-1]


@contextmanager
def _cancelling(futures: Sequence[Future[Any]]) -> Iterator[None]:
    """Whatever happens in the block, let nothing begin after it."""
    try:
        yield
    finally:
        for future in futures:
            future.cancel()


class _Died(Exception):
    """A worker process ended before it had answered."""


class _Worker:
    """A process that does one errand after another."""

    _starting = threading.Lock()

    def __init__(self, start: str, preload: list[str], environment: dict[str, str]) -> None:
        # A fork server imports everything once, for all workers. Forking this process, with its threads, is not safe.
        context: Any = multiprocessing.get_context(start)
        if start == "forkserver":
            context.set_forkserver_preload([__name__, *preload])  # heeded before the first process starts
        self._pipe, its_end = context.Pipe()
        self._process = context.Process(target=_serve, args=(its_end,), daemon=True)
        with self._starting, _environment(environment):
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

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> None:
        self._pipe.close()
        self._process.join()


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set variables that processes started in the block inherit."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _serve(pipe: Connection) -> None:
    """Do what comes through the pipe until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits
    _end_with_parent()
    while True:
        try:
            request = pipe.recv_bytes()
        except EOFError:
            os._exit(0)  # at once: to take a process to pieces that has loaded much takes half a second
        pipe.send_bytes(_answer(request))


def _answer(request: bytes) -> bytes:
    try:
        return pickle.dumps((pickle.loads(request)(), None))
    except Exception as error:
        error.add_note("In a worker process:\n" + traceback.format_exc())
        return pickle.dumps((None, error))


def _end_with_parent() -> None:
    """Let this process end when the one that started it does, even if that is killed."""
    parent = multiprocessing.parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
