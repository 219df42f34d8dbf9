"""Threads for work on many cases; parts of compiled loops are tested with the estimators."""

from __future__ import annotations

import threading
import time

import pytest

from annotruth.parallel.threads import map_in_threads, thread_count


def test_answers_come_in_the_order_of_the_tasks_with_one_thread_for_loops() -> None:
    def work(task: int) -> tuple[int, int]:
        time.sleep(0.002 * (task % 3))
        return task, thread_count()

    assert list(map_in_threads(work, range(20), 3)) == [(task, 1) for task in range(20)]


def test_one_thread_is_this_one() -> None:
    assert set(map_in_threads(lambda _: threading.current_thread(), range(3), 1)) == {threading.current_thread()}


def test_few_answers_wait_to_be_fetched() -> None:
    begun: list[int] = []
    answers = map_in_threads(begun.append, range(100), 2)
    next(answers)
    time.sleep(0.05)
    assert len(begun) <= 6
    answers.close()
    time.sleep(0.05)
    assert len(begun) <= 6


def test_an_error_ends_it() -> None:
    with pytest.raises(ZeroDivisionError):
        list(map_in_threads(lambda task: 1 // task, [1, 0, 1], 2))
