"""annotruth --version and python -m annotruth, which answer without loading anything heavy."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import annotruth as at


def test_version(annotruth: Callable[..., Any]) -> None:
    ended = annotruth("--version")
    assert (ended.code, ended.out, ended.err) == (0, f"annotruth {at.__version__}\n", "")


def test_the_package_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "annotruth"]
    shown = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    assert (shown.returncode, shown.stdout) == (0, f"annotruth {at.__version__}\n"), shown.stderr
    wrong = subprocess.run([*command, "check", "no such folder"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "there is no such file or folder" in wrong.stdout


def test_the_version_is_told_with_light_imports() -> None:
    program = """
import runpy, sys
sys.argv = ["annotruth", "--version"]
try:
    runpy.run_module("annotruth", run_name="__main__")
except SystemExit:
    pass
print(sorted({"numpy", "pandas", "torch", "nibabel", "pyarrow"} & set(sys.modules)))
"""
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert shown.stdout.splitlines()[-1] == "[]", shown.stdout + shown.stderr
