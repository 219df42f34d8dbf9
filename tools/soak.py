"""Kill jobs at random moments, let them go on, and compare what they leave with what undisturbed ones left.

``python -m tools.soak [--minutes 12] [--kills 200] [--seed 0] [--write]``. Jobs are forked from a process that has
loaded all libraries, so that kills fall into the work and not into imports; training in two processes starts them anew.
Folders lie on this file system and, where there is one, on another; a small one of its own is mounted where the system
allows, which is full, or read-only, every now and then.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
from tools.soak_jobs import Job, dask_cluster, make_jobs

RESULTS = Path(__file__).parents[1] / "docs" / "results" / "soak.md"
OTHER = Path("/dev/shm")
SIGNALS = (signal.SIGKILL,) * 5 + (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
RUSHED = ("fuse", "import")
PATIENCE = 300
"""Seconds after which a job that nobody disturbs is taken to hang."""


def start(job: Job, out: Path, again: bool, log: Path, without: str = "") -> int:
    """Start a job in a group of processes of its own; ``without`` one of its words."""
    what = (job.go_on if again else job.begin)(out)
    what = what if callable(what) else [word for word in what if word != without]
    if job.fresh:
        with log.open("ab") as file:
            command = [sys.executable, "-W", "ignore", "-m", "annotruth", *what]
            return subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True).pid
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        os.setsid()
        file_number = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(file_number, 1)
        os.dup2(file_number, 2)
        if callable(what):
            from annotruth.parallel.signals import ending_on_signals

            with ending_on_signals():
                what()
            code = 0
        else:
            from annotruth.cli import main

            sys.argv = ["annotruth", *what]
            main()
            code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException as error:
        traceback.print_exc()
        code = getattr(error, "exit_code", 130 if isinstance(error, KeyboardInterrupt) else code)
    finally:
        os._exit(code)


def wait(pid: int, seconds: float) -> int | None:
    """The exit code; None if it has not ended by then."""
    until = time.monotonic() + seconds
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= until:
            return None
        time.sleep(0.002)


def end(pid: int, how: signal.Signals) -> int:
    """Send a signal to a job's processes and give its exit code; one that does not end by it is killed."""
    with suppress(ProcessLookupError):
        os.killpg(pid, how) if how == signal.SIGKILL else os.kill(pid, how)
    code = wait(pid, 60)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    return wait(pid, 10) or -9 if code is None else code


class SmallDisk:
    """A file system of a few MB of its own, that can be full or read-only; None where it cannot be mounted."""

    def __init__(self, folder: Path, size: str) -> None:
        self.folder, self.size = folder, size

    @classmethod
    def mount(cls, folder: Path, size: str = "48m") -> SmallDisk | None:
        folder.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True)
        return cls(folder, size) if done.returncode == 0 else None

    def hinder(self, how: str) -> None:
        if how == "read-only":
            subprocess.run(["mount", "-o", "remount,ro", self.folder], check=False, capture_output=True)
        else:
            free = shutil.disk_usage(self.folder).free
            with suppress(OSError):
                (self.folder / "filler").write_bytes(bytes(max(free - 20_000, 0)))

    def help(self) -> None:
        subprocess.run(["mount", "-o", "remount,rw", self.folder], check=False, capture_output=True)
        (self.folder / "filler").unlink(missing_ok=True)

    def unmount(self) -> None:
        subprocess.run(["umount", self.folder], check=False, capture_output=True)


def disturb(job: Job, out: Path, disk: SmallDisk | None, chance: random.Random, log: Path, kills_left: int) -> int:
    """Begin a job, kill it and let it go on, time and again until it is done; give the number of kills."""
    begun, kills = False, 0
    for _ in range(60):
        how = chance.choice(["full disk", "read-only"]) if disk is not None and chance.random() < 0.2 else None
        if disk is not None and how is not None:
            disk.hinder(how)
            job.hindered[how] += 1
        again = begun and ((out / "run.json").exists() if "train" in job.name else True)
        pid = start(job, out, again, log)
        left_alone = kills >= 8 or kills >= kills_left
        began = time.monotonic()
        code = wait(pid, PATIENCE if left_alone else chance.uniform(0, job.pace))
        if code == 0 and (not again or job.begin is job.go_on):
            job.pace = time.monotonic() - began
        if code is None:
            sent = signal.SIGKILL if left_alone else chance.choice(SIGNALS)
            code = end(pid, sent)
            if left_alone:
                job.troubles.append(f"did not end in {PATIENCE} s")
                break
            if code != 0:
                kills += 1
                job.kills[sent.name] += 1
                # Before Python has put up its handlers, the system itself ends it: -15 and the like.
                if sent != signal.SIGKILL and code not in (128 + sent, -sent) and how is None:
                    job.troubles.append(f"exit code {code} after {sent.name}")
        elif how is None and code not in (0, *(128 + each for each in SIGNALS)):
            job.troubles.append(f"exit code {code} without a kill: {log.read_text(errors='replace')[-600:]}")
            break
        if disk is not None:
            disk.help()
        begun = True
        if code == 0:
            job.finished += 1
            same = job.outcome(out) == job.wanted
            job.identical += same
            if not same:
                job.troubles.append(f"another result in {out}")
            break
    return kills


@dataclass(frozen=True)
class Rush:
    """Many jobs at once into one folder: how many of them said that they are done, and how many refused."""

    name: str
    place: str
    jobs: int
    done: int
    refused: int
    identical: bool

    @property
    def trouble(self) -> str:
        well = self.done == 1 and self.refused == self.jobs - 1 and self.identical
        return "" if well else f"{self.jobs} at once: {self}"


def rush(job: Job, place: str, out: Path, log: Path, count: int = 20) -> Rush:
    """Start a job many times at once, each in a process of its own, all into one folder that is nobody's yet.

    One may write there; any other finds the folder locked, or used, and must say so with exit code 2.
    """
    pids = [start(job, out, False, log, without="--overwrite") for _ in range(count)]
    codes = [wait(pid, PATIENCE) for pid in pids]
    return Rush(job.name, place, count, codes.count(0), codes.count(2), job.outcome(out) == job.wanted)


def main() -> int:
    wanted = argparse.ArgumentParser(prog="python -m tools.soak")
    wanted.add_argument("--minutes", type=float, default=12, help="begin nothing new after so long")
    wanted.add_argument("--kills", type=int, default=200, help="... or after so many kills")
    wanted.add_argument("--seed", type=int, default=0)
    wanted.add_argument("--only", help="only jobs whose name begins so")
    wanted.add_argument("--write", action="store_true", help=f"keep the counts in {RESULTS.name}")
    asked = wanted.parse_args()
    chance, began = random.Random(asked.seed), time.monotonic()
    import annotruth.experiments
    import annotruth.fusion.folder
    import annotruth.training.runs  # noqa: F401

    with tempfile.TemporaryDirectory(prefix="soak-") as name, dask_cluster(Path(name)) as dask:
        base = Path(name)
        log, disk = base / "log", SmallDisk.mount(base / "small")
        other = Path(tempfile.mkdtemp(prefix="soak-", dir=OTHER)) if OTHER.is_dir() else None
        try:
            jobs = [job for job in make_jobs(base, dask) if job.name.startswith(asked.only or "")]
            for job in jobs:
                _measure(job, base / "undisturbed", log)
            homes = [("this file system", base, None)]
            homes += [] if other is None else [("another file system", other, None)]
            homes += [] if disk is None else [("a small one, full or read-only at times", disk.folder, disk)]
            rushes = []
            for place, home, _ in homes:
                for job in [each for each in jobs if each.name in RUSHED]:
                    rushes.append(rush(job, place, home / "out", log))
                    shutil.rmtree(home / "out", ignore_errors=True)
                    print(rushes[-1], flush=True)
            count = number = 0
            turns = iter(jobs)  # each once, in any case
            while count < asked.kills and time.monotonic() - began < 60 * asked.minutes:
                job = next(turns, None) or chance.choices(jobs, [each.weight for each in jobs])[0]
                place, home, own = homes[number % len(homes)]
                number += 1
                out = home / "out"
                log.unlink(missing_ok=True)
                job.places[place] += 1
                count += disturb(job, out, own, chance, log, asked.kills - count)
                shutil.rmtree(out, ignore_errors=True)
                print(
                    f"{count} kills, {sum(job.identical for job in jobs)} identical ({job.name}, {place})", flush=True
                )
        finally:
            if disk is not None:
                disk.unmount()
            if other is not None:
                shutil.rmtree(other, ignore_errors=True)
    troubles = [f"{job.name}: {trouble}" for job in jobs for trouble in job.troubles]
    troubles += [each.trouble for each in rushes if each.trouble]
    print("\n".join(troubles))
    if asked.write:
        write(jobs, rushes, homes, time.monotonic() - began, asked.seed)
    return 1 if troubles else 0


def _measure(job: Job, out: Path, log: Path) -> None:
    """Let a job run undisturbed, to know what it gives and how long it takes; a cluster's first takes longer."""
    for _ in range(1 if job.fresh else 2):
        began = time.monotonic()
        code = wait(start(job, out, False, log), PATIENCE)
        if code != 0:
            raise RuntimeError(f"{job.name} ended with {code}: {log.read_text(errors='replace')[-2000:]}")
        job.pace = job.seconds = time.monotonic() - began
        job.wanted = job.outcome(out)
        shutil.rmtree(out)
    print(f"{job.name}: {job.seconds:.1f} s undisturbed", flush=True)


def write(jobs: list[Job], rushes: list[Rush], homes: list[Any], seconds: float, seed: int) -> None:
    """Keep the counts by job."""
    lines = [
        "# Soak: jobs that are killed and go on",
        "",
        "Small jobs are killed at random moments (SIGKILL mostly, of all their processes; SIGTERM, SIGHUP and SIGINT "
        "at times, whose exit codes are checked) and gone on with until they are done. Their results must then be "
        "those of an undisturbed job: models byte for byte, every file of a fusion (but for the seconds it took) and "
        "of an import byte for byte, every score of a table.",
        "",
        "| job | seconds undisturbed | kills | of which SIGKILL | tries on a full disk | on a read-only one | finished "
        "| identical |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for job in jobs:
        lines.append(
            f"| {job.name} | {job.seconds:.1f} | {job.kills.total()} | {job.kills['SIGKILL']} "
            f"| {job.hindered['full disk']} | {job.hindered['read-only']} "
            f"| {job.finished} | {job.identical} of {job.finished} |"
        )
    total = sum((job.kills for job in jobs), Counter())
    finished, identical = (sum(getattr(job, name) for job in jobs) for name in ("finished", "identical"))
    hindered = sum((job.hindered for job in jobs), Counter())
    lines += [
        f"| **all** | | {total.total()} | {total['SIGKILL']} | {hindered['full disk']} | {hindered['read-only']} "
        f"| {finished} | {identical} of {finished} |",
        "",
        f"Folders lay on {', '.join(place for place, _, _ in homes)}. Seed {seed}; {seconds / 60:.0f} minutes; Python "
        f"{platform.python_version()}, {platform.system()}; {time.strftime('%Y-%m-%d')}. Made anew by `make soak`.",
    ]
    lines += [
        "",
        "## Many at once into one folder",
        "",
        "Jobs that are started at the same moment, each a process of its own, with the same output folder: one may "
        "write there, any other must refuse with exit code 2, and what the one wrote must be what it writes alone.",
        "",
        "| job | on | at once | done | refused | result identical |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for each in rushes:
        same = "yes" if each.identical else "no"
        lines.append(f"| {each.name} | {each.place} | {each.jobs} | {each.done} | {each.refused} | {same} |")
    troubles = [f"- {job.name}: {trouble.splitlines()[0]}" for job in jobs for trouble in job.troubles]
    troubles += [f"- {each.trouble}" for each in rushes if each.trouble]
    lines += ["", "What went wrong:", "", *troubles] if troubles else []
    RESULTS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
