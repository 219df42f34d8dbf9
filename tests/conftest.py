"""The command line, run inside the test's own process (imports are paid for once), and a browser."""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

BROWSER_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--force-prefers-reduced-motion", "--window-size=1280,900",
)  # fmt: skip


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


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Chromium without a screen, which logs errors and what it asks the network for; a test is skipped without it."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    program, driver = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
    if not (program and driver):
        pytest.skip("no Chromium with chromedriver was found")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*BROWSER_FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver))
    yield chrome
    chrome.quit()
