"""Threads for compiled loops. Which parts there are never depends on the threads, so neither do the results.

The kernels release Python's lock and run in a plain thread pool: no threading layer to choose, safe to call from
several threads at once and in forked workers.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from threading import Lock
from typing import Any, TypeVar

T = TypeVar("T")

READING_HEADERS = Lock()
"""To be held while NumPy opens an array of a file: it parses the header as Python, of which CPython 3.11 counts the
depth for all threads together, and stops with a SystemError (gh-106905) where two do so at once."""
_TURN = 1e-4  # seconds
_chosen: ContextVar[int | None] = ContextVar("annotruth_threads", default=None)


def thread_count() -> int:
    """How many threads the compiled loops use: as many as there are cores, or ``NUMBA_NUM_THREADS``."""
    return _chosen.get() or _usual_count()


@cache
def _usual_count() -> int:
    wanted = os.environ.get("NUMBA_NUM_THREADS", "")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, int(wanted)) if wanted.isdecimal() else cores


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Use this many threads inside the ``with`` block.

    Examples
    --------
    >>> with threads(1):
    ...     thread_count()
    1
    """
    token = _chosen.set(max(1, int(count)))
    try:
        yield
    finally:
        _chosen.reset(token)


def run_parts(work: Callable[..., T], parts: Sequence[tuple[Any, ...]]) -> list[T]:
    """Call ``work(*part)`` for each part, in threads; give the results in the order of the parts.

    Examples
    --------
    >>> run_parts(lambda first, last: last - first, [(0, 3), (3, 7)])
    [3, 4]
    """
    workers = min(thread_count(), len(parts))
    if workers <= 1:
        return [work(*part) for part in parts]
    left, results = deque(range(len(parts))), dict[int, T]()

    def take_parts() -> None:
        while left:
            try:
                number = left.popleft()
            except IndexError:  # another thread took the last one
                return
            results[number] = work(*parts[number])

    # This thread works too: nothing waits for others to wake up, and calls may be nested.
    helpers = [_pool(workers - 1).submit(take_parts) for _ in range(workers - 1)]
    try:
        take_parts()
    finally:
        left.clear()
        begun = [helper for helper in helpers if not helper.cancel()]
        wait(begun)
    for helper in begun:
        helper.result()
    return [results[number] for number in range(len(parts))]


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="annotruth")


os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork


def map_in_threads(work: Callable[[Any], T], tasks: Iterable[Any], n_threads: int) -> Iterator[T]:
    """Give the answers in the order of the tasks, so many being worked on at a time; few wait to be fetched.

    Reading, unpacking and writing files go on beside each other; compiled loops get one thread each.

    Examples
    --------
    >>> list(map_in_threads(len, ["one", "three"], n_threads=2))
    [3, 5]
    """

    def alone(task: Any) -> T:
        with threads(1):
            return work(task)

    if n_threads <= 1:
        yield from map(work, tasks)
        return
    with _short_turns(), ThreadPoolExecutor(n_threads, thread_name_prefix="annotruth-case") as pool:
        waiting: deque[Future[T]] = deque()
        try:
            for task in tasks:
                waiting.append(pool.submit(alone, task))
                if len(waiting) > 2 * n_threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


@contextmanager
def _short_turns() -> Iterator[None]:
    """Let threads that come back from unpacking or writing wait less than usual for their turn at Python.

    The usual 5 milliseconds are longer than most of what is done for a case, and cores would stand idle.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, _TURN))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def split_range(size: int, part: int) -> list[tuple[int, int]]:
    """Cut ``range(size)`` into pieces of at most ``part``.

    Examples
    --------
    >>> split_range(5, 2)
    [(0, 2), (2, 4), (4, 5)]
    """
    return [(first, min(first + part, size)) for first in range(0, size, part)]
