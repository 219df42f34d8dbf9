"""Worker processes: killed, failing, started by somebody who is killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pytest

from annotruth.errors import AnnotruthError, InputError
from annotruth.parallel.workers import Processes, open_workers

PRELOAD = ["annotruth.fusion.folder"]
"""What fusion asks for: the server that forks all processes of this test run is started once, by whichever test comes
first."""


def kill_a_child() -> int:
    victim = multiprocessing.active_children()[0]
    with suppress(ProcessLookupError):  # it is dead already, and nobody has noticed yet
        os.kill(victim.pid, signal.SIGKILL)
    return victim.pid


def test_a_process_killed_at_any_moment_stops_nobody() -> None:
    """Also while it answers: what is larger than a pipe takes several turns to get through."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        with open_workers(2, preload=PRELOAD) as across:
            for task, answer in enumerate(across(bytes, range(1_000_000, 1_000_060))):
                assert len(answer) == 1_000_000 + task
                if task in (5, 30):
                    time.sleep(rng.uniform(0, 0.01))
                    kill_a_child()


def test_workers_end_when_the_process_that_started_them_is_killed() -> None:
    psutil = pytest.importorskip("psutil")
    program = (
        "import multiprocessing, os, signal\n"
        "from annotruth.parallel.workers import open_workers\n"
        "if __name__ == '__main__':\n"
        "    with open_workers(2) as across:\n"
        "        list(across(int, ['1', '2']))\n"
        "        print(*(child.pid for child in multiprocessing.active_children()), flush=True)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, timeout=120)
    workers = [int(pid) for pid in done.stdout.split()]
    assert workers

    def alive(pid: int) -> bool:
        return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE

    until = time.monotonic() + 30
    while any(map(alive, workers)) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(map(alive, workers))


def test_what_goes_wrong_in_a_process_is_said_here_and_others_can_follow() -> None:
    with open_workers(2, preload=PRELOAD) as across:
        with pytest.raises(ValueError, match="invalid literal") as caught:
            list(across(int, ["1", "2", "three"]))
        assert "Traceback" in caught.value.__notes__[0]
        assert list(across(len, ["one", "three"])) == [3, 5]


def test_processes_that_keep_dying_end_the_job() -> None:
    with (
        open_workers(2, preload=PRELOAD) as across,
        pytest.raises(AnnotruthError, match="keep dying, mostly for lack of memory"),
    ):
        list(across(os._exit, [1, 1]))


def test_wrong_numbers_of_workers() -> None:
    with pytest.raises(InputError, match="at least 1"):
        open_workers(0)


def test_answers_come_as_they_are_ready() -> None:
    with Processes(2, preload=PRELOAD) as processes:
        list(processes.map(time.sleep, [0.0, 0.0]))  # both are up
        assert [number for number, _ in processes.as_completed(time.sleep, [1.0, 0.0])] == [1, 0]


def test_an_error_cancels_what_has_not_begun_and_ends_what_has() -> None:
    started = time.monotonic()
    with pytest.raises(ValueError, match="non-negative"), Processes(2, preload=PRELOAD) as processes:
        list(processes.as_completed(time.sleep, [60.0, -1.0, 60.0, 60.0]))
    assert time.monotonic() - started < 30


def test_variables_reach_new_interpreters_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with Processes(2, fresh=True, environment={"OMP_NUM_THREADS": "1"}) as processes:
        assert list(processes.map(os.getenv, ["OMP_NUM_THREADS"] * 2)) == ["1", "1"]
    assert "OMP_NUM_THREADS" not in os.environ


def test_modules_needed_are_loaded_before_the_first_task() -> None:
    program = (
        "from annotruth.parallel.workers import open_workers\n"
        "if __name__ == '__main__':\n"
        "    with open_workers(2, preload=['colorsys']) as across:\n"
        '        print(*across(eval, [\'"colorsys" in __import__("sys").modules\']))\n'
    )
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, timeout=120)
    expected = "forkserver" in multiprocessing.get_all_start_methods()
    assert done.stdout.strip() == str(expected)
