"""Which tests come first, and what examples in documents and docstrings are rightly warned of.

They train on small digits for an epoch or two.
"""

import gc
import signal

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that starts tests in the background lets them, and the programs they start, ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)

EXPECTED = ("IdentifiabilityWarning", "SmallImageWarning")


LONG = (
    "test_ddp.py",
    "test_runner.py",
    "test_many_workers.py",
    "test_stores.py",
    "test_workers.py",
    "test_recovery.py",
    "test_contract.py",
    "tutorial.md",
    "test_mrprism.py",
    "test_train.py",
    "test_hostile.py",
    "test_anchor.py",
)
"""Files that take longest: begun first, so that no process is left alone with one of them at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: LONG.index(item.path.name) if item.path.name in LONG else len(LONG))
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            for name in EXPECTED:
                item.add_marker(pytest.mark.filterwarnings(f"ignore::annotruth.errors.{name}"))


def pytest_collection_finish() -> None:
    gc.freeze()  # what is imported by now stays: collecting garbage need not go through it again and again
