"""Kill jobs at random moments, let them go on, and compare what they leave with what undisturbed ones left.

``python -m tools.soak [--minutes 10] [--kills 200] [--seed 0] [--write]``. Jobs are forked from a process that has
loaded all libraries, so that kills fall into the work and not into imports; training in two processes starts them anew.
Folders lie on this file system and, where there is one, on another; a small one of its own is mounted where the system
allows, which is full, or read-only, every now and then.
"""

from __future__ import annotations

import argparse
import json
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

RESULTS = Path(__file__).parents[1] / "docs" / "results" / "soak.md"
OTHER = Path("/dev/shm")
SIGNALS = (signal.SIGKILL,) * 5 + (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
PATIENCE = 300
"""Seconds after which a job that nobody disturbs is taken to hang."""


@dataclass
class Job:
    """A job that can be cut off and gone on with.

    Attributes
    ----------
    begin, go_on : words of the command line for an output folder; or what to call with it
    outcome : what is compared, of a folder
    fresh : start it as a new interpreter instead of forking
    """

    name: str
    begin: Callable[[Path], Any]
    go_on: Callable[[Path], Any]
    outcome: Callable[[Path], Any]
    fresh: bool = False
    wanted: Any = None
    seconds: float = 0.0
    kills: Counter[str] = field(default_factory=Counter)
    hindered: Counter[str] = field(default_factory=Counter)
    places: Counter[str] = field(default_factory=Counter)
    finished: int = 0
    identical: int = 0
    troubles: list[str] = field(default_factory=list)


# -- the jobs ---------------------------------------------------------------------------------------------------


CLUSTER = """
import time
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster:
        print(cluster.scheduler_address, flush=True)
        time.sleep(86400)
"""


@contextmanager
def dask_cluster(folder: Path) -> Iterator[str | None]:
    """The address of a small Dask cluster, in processes of its own; None where there is no Dask."""
    (folder / "cluster.py").write_text(CLUSTER)
    with subprocess.Popen(
        [sys.executable, folder / "cluster.py"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        start_new_session=True,
    ) as cluster:  # fmt: skip
        try:
            assert cluster.stdout is not None
            yield cluster.stdout.readline().strip() or None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(cluster.pid, signal.SIGKILL)


def make_jobs(base: Path, dask: str | None) -> list[Job]:
    """Jobs on small data, which are made first."""
    _make_data(base)
    quick = ["--epochs", "4", "--batch-size", "2", "--quiet", "--accelerator", "cpu", "--patience", "4"]

    def training(name: str, words: list[str], *more: str, fresh: bool = False) -> Job:
        def begin(out: Path) -> list[str]:
            return ["train", *words, "-o", str(out), *quick, *more, "--overwrite"]

        def go_on(out: Path) -> list[str]:
            return ["train", *words, "-o", str(out), "--resume", "--quiet", "--accelerator", "cpu", *more[2:]]

        return Job(name, begin, go_on, lambda out: (out / "model.annotruth").read_bytes(), fresh)

    def fusing(name: str, *more: str) -> Job:
        def begin(out: Path) -> list[str]:
            return ["fuse", str(base / "planes"), "-o", str(out), "--quiet", "--overwrite", *more]

        return Job(name, begin, begin, _fused)

    planes, volumes = str(base / "planes"), str(base / "volumes")
    table = [str(base / "answers.csv"), "--features", str(base / "features.npy")]
    return [
        training("train, planes", [planes], "--method", "pixel-cm"),
        training("train, volumes", [volumes], "--method", "mean"),
        training("train, a label table", table, "--method", "global-cm"),
        fusing("fuse"),
        fusing("fuse, two processes", "--jobs", "2"),
        *([] if dask is None else [fusing("fuse, Dask", "--dask", dask)]),
        Job("reproduce", _reproduce, _reproduce, _table),
        training("train, two processes", [planes], "--method", "mean", "--devices", "2", fresh=True),
    ]


def _make_data(base: Path) -> None:
    import numpy as np

    from annotruth.io import write_case_folder
    from annotruth.simulate import simulate_masks

    rng = np.random.default_rng(0)
    for name, shape, count in (("planes", (24, 24), 12), ("volumes", (8, 8, 8), 6)):
        truth = np.zeros((count, *shape), np.uint8)
        for mask in truth:
            corner = rng.integers(0, min(shape) // 2, len(shape))
            mask[tuple(slice(start, start + min(shape) // 2) for start in corner)] = 1
        images = (truth[:, None] + rng.normal(0, 0.3, (count, 1, *shape))).astype(np.float32)
        annotations = simulate_masks(truth, ("good", "over", "under"), keep="all").annotations(images=images)
        write_case_folder(base / name, annotations, suffix=".npy")
    answers = "".join(f"{n},r{r},{'ab'[int(n % 2) ^ int(rng.random() < 0.1)]}\n" for n in range(200) for r in range(4))
    (base / "answers.csv").write_text(f"item,rater,label\n{answers}")
    np.save(base / "features.npy", np.arange(200)[:, None] % 2 + rng.normal(0, 0.3, (200, 3)))


def _fused(out: Path) -> dict[str, Any]:
    """Every file of a fusion; but for how long it took."""
    files: dict[str, Any] = {
        str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()
    }
    content = json.loads(files["fusion.json"])
    del content["seconds"]
    return {**files, "fusion.json": content}


def _reproduce(out: Path) -> Callable[[], None]:
    def run() -> None:
        from annotruth.experiments import run_experiment
        from annotruth.experiments.core.columns import DICE
        from annotruth.experiments.core.experiment import Experiment, Row
        from annotruth.experiments.core.task import Scale
        from annotruth.experiments.data import digits

        few = Scale({"train": 16, "test": 6}, {"max_epochs": 2, "batch_size": 8})
        rows = (Row("mean"), Row("pixel-cm"))
        run_experiment(
            Experiment(
                "tiny", "A tiny table", digits.digits_task, {"dense": digits.SETTINGS["dense"]}, rows, (DICE,), few, few
            ),
            out,
        )

    return run


def _table(out: Path) -> list[Any]:
    """The scores; but for how long trainings took."""
    rows = json.loads((out / "tiny.json").read_text())["rows"]
    return [{name: value for name, value in row.items() if name != "wall_time"} for row in rows]


# -- disturbing them --------------------------------------------------------------------------------------------


def start(job: Job, out: Path, again: bool, log: Path) -> int:
    """Start a job in a group of processes of its own."""
    what = (job.go_on if again else job.begin)(out)
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
        code = wait(pid, PATIENCE if left_alone else chance.uniform(0, 1.1 * job.seconds))
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


def main() -> int:
    wanted = argparse.ArgumentParser(prog="python -m tools.soak")
    wanted.add_argument("--minutes", type=float, default=10, help="begin nothing new after so long")
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
            count = number = 0
            while count < asked.kills and time.monotonic() - began < 60 * asked.minutes:
                # Jobs that start anew take ten times as long: fewer of them.
                job = chance.choice([each for each in jobs for _ in range(1 if each.fresh else 5)])
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
    print("\n".join(troubles))
    if asked.write:
        write(jobs, homes, time.monotonic() - began, asked.seed)
    return 1 if troubles else 0


def _measure(job: Job, out: Path, log: Path) -> None:
    """Let a job run undisturbed, to know what it gives and how long it takes."""
    began = time.monotonic()
    code = wait(start(job, out, False, log), PATIENCE)
    if code != 0:
        raise RuntimeError(f"{job.name} ended with {code}: {log.read_text(errors='replace')[-2000:]}")
    job.seconds, job.wanted = time.monotonic() - began, job.outcome(out)
    shutil.rmtree(out)
    print(f"{job.name}: {job.seconds:.1f} s undisturbed", flush=True)


def write(jobs: list[Job], homes: list[Any], seconds: float, seed: int) -> None:
    """Keep the counts by job."""
    lines = [
        "# Soak: jobs that are killed and go on",
        "",
        "Small jobs are killed at random moments (SIGKILL mostly, of all their processes; SIGTERM, SIGHUP and SIGINT "
        "at times, whose exit codes are checked) and gone on with until they are done. Their results must then be "
        "those of an undisturbed job: models byte for byte, every file of a fusion byte for byte (but for the seconds "
        "it took), every score of a table.",
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
    troubles = [f"- {job.name}: {trouble.splitlines()[0]}" for job in jobs for trouble in job.troubles]
    lines += ["", "What went wrong:", "", *troubles] if troubles else []
    RESULTS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
