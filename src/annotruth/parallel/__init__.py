"""The same work on many things at once: in threads, in other processes, on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

MapFunction = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
"""Calls a function on each of many things, giving the answers in order: ``map``, or workers."""

WORKERS_KEEP_DYING = (
    "Worker processes keep dying, mostly for lack of memory. Use fewer at a time, or workers with more memory."
)
_MAX_TASKS = 8  # per errand: enough to hide the way there, few enough for a lively progress bar


def run_errand(work: Callable[[Any], Any], tasks: Sequence[Any], n_threads: int) -> list[Any]:
    """Do the work on each task, with so many threads for the compiled loops; what one worker does in one go."""
    from annotruth.parallel.threads import threads  # which loads Numba: not for those who only name the type

    with threads(n_threads):
        return [work(task) for task in tasks]


def split_tasks(tasks: Sequence[Any], n_workers: int) -> list[Sequence[Any]]:
    """Cut the tasks into errands, several for each worker so that all end at about the same time.

    Examples
    --------
    >>> split_tasks("abcdefgh", 2)
    ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
    >>> [len(errand) for errand in split_tasks(range(100), 2)]
    [6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 4]
    """
    size = min(max(len(tasks) // (8 * max(n_workers, 1)), 1), _MAX_TASKS)
    return [tasks[first : first + size] for first in range(0, len(tasks), size)]
