"""How much memory there is to take."""

from __future__ import annotations

import subprocess
import sys

from annotruth.parallel.memory import available_memory


def test_some_memory_is_free() -> None:
    assert 2**20 < available_memory() < 2**50


def test_a_limit_of_the_process_counts() -> None:
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30));"
        "from annotruth.parallel.memory import available_memory; print(available_memory() <= 2**30)"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "True\n"
