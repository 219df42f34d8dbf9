"""Memory that is freed and needed again."""

from __future__ import annotations

import ctypes
import resource
import sys
from pathlib import Path

import pytest
import torch

from annotruth.training.memory import keep_freed_memory

PAGES = 2**14  # 64 MB: more than glibc keeps by itself

on_glibc = pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallopt"), reason="nothing is done without glibc"
)


def new_pages(times: int) -> int:
    """How many pages are mapped anew while a large tensor is made and freed again and again."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        torch.ones(PAGES * 1024)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def resident_bytes() -> int:
    return resource.getpagesize() * int(Path("/proc/self/statm").read_text().split()[1])


@on_glibc
def test_what_is_freed_is_used_again_instead_of_new_pages() -> None:
    with keep_freed_memory():
        new_pages(times=1)
        assert new_pages(times=8) <= 2 * PAGES  # one more block, where the first one's place was taken


@on_glibc
def test_what_was_kept_is_given_back_at_the_end_even_of_a_failure() -> None:
    kept = []

    def fail() -> None:
        with keep_freed_memory():
            new_pages(times=1)
            kept.append(resident_bytes())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert resident_bytes() < kept[0] - resource.getpagesize() * PAGES // 2


def test_elsewhere_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(ctypes, "CDLL", None)
    with keep_freed_memory():
        assert torch.ones(2).sum() == 2
