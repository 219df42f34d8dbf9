"""The command line as a whole: its version, its help, how it refuses wrong use; light until it has to work."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import annotruth as at
from annotruth.cli import app
from annotruth.errors import InputError

Run = Callable[..., Any]


def test_version(annotruth: Run) -> None:
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


# Trainings of one epoch: a model that knows little is rightly doubted.


def test_wrong_use_of_the_other_verbs(
    assert_one_paragraph: Run, annotruth: Run, home: Path, out: Path, fingerprint: Run
) -> None:
    digits, run, nowhere = home / "digits", home / "run", home / "nowhere"
    (out / "sub").mkdir(parents=True)
    (out / "notes.txt").write_text("mine")
    before = fingerprint(home), fingerprint(out)
    for command, message in [
        (("simulate", nowhere, "-o", out / "new"), "no such folder"),
        (("simulate", digits / "images", "-o", out / "new"), "without masks"),
        (("simulate", digits, "-o", out / "new", "--raters", "saint"), "Unknown kind of mask rater 'saint'"),
        (("simulate", digits, "-o", out / "new", "--keep", "many"), "--keep is 'all' or a whole number"),
        (("simulate", digits, "-o", out / "new", "--keep", "9"), "how many of the 5 raters"),
        (("simulate", digits, "-o", out), "already holds files"),
        (("predict", nowhere, digits / "images", "-o", out / "new"), "There is no model"),
        (("predict", digits, digits / "images", "-o", out / "new"), "There is no model"),
        (("predict", run, nowhere, "-o", out / "new"), "no such folder"),
        (("predict", run, digits / "images", "-o", out), "already holds files"),
        (("predict", run, digits / "images", "-o", out / "new", "--recurrence", 0), "knows nothing of recurrence"),
        (("predict", run, digits / "images", "-o", out / "new", "--confidence", "over"), "rater=number, as ann=2"),
        (("report", nowhere), "holds no run"),
        (("report", run, "--cases", nowhere, "-o", out / "new.html"), "no such file or folder"),
    ]:
        ended = annotruth(*command)
        assert ended.code == 2, command
        assert message in ended.err, (command, ended.err)
        assert_one_paragraph(ended.err)
        assert (fingerprint(home), fingerprint(out)) == before, command


def test_debug_shows_where_it_went_wrong(annotruth: Run, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        annotruth("train", tmp_path / "nowhere", "-o", tmp_path / "out", "--debug")


def test_help_lists_the_verbs(annotruth: Run) -> None:
    ended = annotruth("--help")
    assert ended.code == 0
    for verb in ("demo", "check", "simulate", "fuse", "train", "predict", "report"):
        assert verb in ended.out
    assert "--debug" in ended.out


@pytest.mark.parametrize("verb", [command.name or "" for command in app.registered_commands])
def test_every_verb_has_an_example(annotruth: Run, verb: str) -> None:
    ended = annotruth(verb, "--help")
    assert ended.code == 0
    assert f"Example:  annotruth {verb}" in ended.out
