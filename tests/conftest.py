"""The command line, run inside the test's own process: imports are paid for once."""

from __future__ import annotations

import hashlib
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest


class Ended(NamedTuple):
    """How a command ended: its exit code and what it printed, without colours."""

    code: int
    out: str
    err: str


@pytest.fixture
def annotruth(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Run ``annotruth`` with some arguments."""

    def run(*arguments: object) -> Ended:
        from annotruth.cli import main

        monkeypatch.setattr(sys, "argv", ["annotruth", *map(str, arguments)])
        capsys.readouterr()
        with warnings.catch_warnings():
            warnings.simplefilter("default")  # shown, not raised: this is how users meet them
            try:
                main()
                code = 0
            except SystemExit as end:
                code = int(end.code or 0)
        out, err = (re.sub(r"\x1b\[[0-9;]*m", "", text) for text in capsys.readouterr())
        return Ended(code, out, err)

    return run


@pytest.fixture
def fingerprint() -> Callable[[Path], str]:
    """A hash of all names and contents under a folder."""

    def take(folder: Path) -> str:
        found = hashlib.sha256()
        for path in sorted(folder.rglob("*")):
            found.update(str(path.relative_to(folder)).encode())
            found.update(path.read_bytes() if path.is_file() else b"/")
        return found.hexdigest()

    return take
