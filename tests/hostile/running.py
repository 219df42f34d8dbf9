"""Runs attacks, each in a forked process with little memory and time, and judges how they ended."""

from __future__ import annotations

import gc
import hashlib
import os
import resource
import shutil
import signal
import stat
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.hostile import exports, folders, json_exports, models, names, stores, tables, words, xml_exports
from tests.hostile.attacks import CANARY, Attack

PARTS = (folders, tables, models, exports, xml_exports, json_exports, names, stores, words)
SECONDS = 30
MEMORY = 2**31
"""Bytes that a process may take beyond what it has when all libraries are loaded."""


UNPACKED = ".unpacked"


@dataclass(frozen=True)
class Ended:
    """How an attack ended; ``trouble`` is empty if it ended well."""

    attack: Attack
    code: int
    seconds: float
    trouble: str
    said: str


def all_attacks() -> list[Attack]:
    """Every attack, no two alike."""
    found = [attack for part in PARTS for attack in part.all_attacks()]
    assert len({(attack.kind, attack.name, attack.command) for attack in found}) == len(found), "two attacks are alike"
    return found


def prepare(base: Path, with_models: bool = True) -> None:
    """Make sound things to attack, in a process of its own so that this one stays without threads."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            _silence(base / "log")
            folders.make_sound(base)
            if with_models:
                models.make_sound(base)
            exports.make_sound(base)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    if os.waitpid(child, 0)[1] != 0:
        raise RuntimeError((base / "log").read_text())


def load_libraries() -> None:
    """Import what all verbs need, once for all attacks."""
    import annotruth.cli
    import annotruth.fusion.folder
    import annotruth.io.importing
    import annotruth.reporting
    import annotruth.training.runs
    import annotruth.training.trainer  # noqa: F401


def run(attacks: Iterable[Attack], base: Path, scratch: Path) -> Iterator[Ended]:
    """Run attacks one after the other; each has a folder of its own, which is removed."""
    gc.freeze()  # so that forked processes do not copy what they only look at
    for number, attack in enumerate(attacks):
        home = scratch / str(number)
        home.mkdir(parents=True)
        try:
            yield _run_one(attack, base, home)
        finally:
            shutil.rmtree(home, ignore_errors=True)


def _run_one(attack: Attack, base: Path, home: Path) -> Ended:
    attack.lay_out(base, home)
    before = fingerprint(home)
    log = home.with_suffix(".log")
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        _attempt(attack, base, home, log)
    code = _wait(child, began + SECONDS)
    said = log.read_text(errors="replace") if log.exists() else ""
    log.unlink(missing_ok=True)
    return Ended(attack, code, time.monotonic() - began, _trouble(attack, code, said, before, home), said)


def _attempt(attack: Attack, base: Path, home: Path, log: Path) -> None:
    """In the forked process: run the command and end with its exit code; 99 is an exception that nobody caught."""
    code = 99
    try:
        _silence(log)
        os.chdir(home)
        os.mkdir(UNPACKED)
        tempfile.tempdir = str(home / UNPACKED)  # what is unpacked goes with the attack
        held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY, held + MEMORY))
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**28, 2**28))
        code = _command([word.replace("BASE", str(base)) for word in attack.command])
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _command(words: list[str]) -> int:
    from annotruth.errors import InputError

    if words[0] in ("load", "load_model"):
        import annotruth

        try:
            found = getattr(annotruth, words[0])(words[1])
            if words[0] == "load":
                for index in range(len(found)):
                    _ = found.item_image(index) if found.has_images else None
                    _ = found.item_masks(index) if found.kind == "masks" else None
                    _ = found.item_truth(index) if found.kind == "masks" and found.has_truth else None
        except InputError as error:
            print(error)
            return 2
        return 0
    from annotruth.cli import main

    sys.argv = ["annotruth", *words]
    main()
    return 0


def _silence(log: Path) -> None:
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)


def _wait(child: int, until: float) -> int:
    """The exit code; -9 for one that had to be ended."""
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -9


def _trouble(attack: Attack, code: int, said: str, before: dict[str, str], home: Path) -> str:
    after = fingerprint(home)
    written = [name for name in after if name.startswith(("out/", ".out"))]
    if code == -9:
        return f"did not end in {SECONDS} s"
    if "Traceback (most recent call last)" in said or code == 99:
        return "traceback"
    if code not in (1, 2) and not (code == 0 and attack.harmless):
        return f"exit code {code}"
    if any(Path(name).name == CANARY for name in after.keys() - before.keys()):
        return "something was executed"
    if code == 2 and written:
        return f"left {written[0]}"
    if (code or attack.command[0] == "import") and any(after.get(name) != content for name, content in before.items()):
        return "changed its input"
    if code and not said.strip():
        return "said nothing"
    return ""


def fingerprint(home: Path) -> dict[str, str]:
    """Every entry of a folder with a hash of what it holds; nothing but plain files is opened."""
    found = {}
    for folder, folders_in_it, files in os.walk(home):
        for name in (*folders_in_it, *files):
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            content = str(stat.S_IFMT(mode))
            if stat.S_ISREG(mode):
                with open(path, "rb") as file:
                    content = hashlib.sha256(file.read()).hexdigest()
            found[os.path.relpath(path, home)] = content
    return found
