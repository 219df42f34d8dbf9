"""How much memory there is to take, and memory that is freed and needed again."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

from annotruth.parallel.memory import available_memory, keep_freed_memory

on_glibc = pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallopt"), reason="nothing is done without glibc"
)

SCRIPT = """
import resource
from pathlib import Path
import torch
import annotruth.training  # a process that trains
from annotruth.parallel.memory import keep_freed_memory

PAGES = 2**14  # 64 MB: more than glibc keeps by itself

def new_pages(times):  # mapped while a large tensor is made and freed again and again
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        torch.ones(PAGES * 1024)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / PAGES

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) / PAGES

usual = new_pages(8)
try:
    with keep_freed_memory():
        new_pages(1)
        kept, inside = new_pages(8), resident()
        raise ZeroDivisionError
except ZeroDivisionError:
    print(usual, kept, inside - resident())
"""


def test_some_memory_is_free() -> None:
    assert 2**20 < available_memory() < 2**50


def test_a_limit_of_the_process_counts() -> None:
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30));"
        "from annotruth.parallel.memory import available_memory; print(available_memory() <= 2**30)"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "True\n"


@on_glibc
def test_what_is_freed_is_used_again_and_given_back_at_the_end_even_of_a_failure() -> None:
    """In a process of its own: what others freed before would be used again, too."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    usual, kept, given_back = map(float, done.stdout.split())
    assert usual > 6  # every tensor of eight is mapped anew
    assert kept <= 2
    assert given_back > 0.5


def test_elsewhere_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(ctypes, "CDLL", None)
    with keep_freed_memory():
        assert len(bytes(2)) == 2
