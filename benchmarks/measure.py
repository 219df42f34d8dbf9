"""Times, peak memory and the machine they were measured on."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


@dataclass
class Row:
    """One line of the table.

    Attributes
    ----------
    work, peer : what was done, and what it is compared with
    value, unit : the ratio (or accuracy) measured
    target : what it must reach, and ``at_most`` whether it must stay below instead; None = only told, not asked for
    passed : whether it did, together with ``same`` results where that was asked; None without a target
    details : seconds, sizes and differences behind it
    """

    work: str
    peer: str
    value: float
    unit: str
    target: float | None
    at_most: bool = False
    same: bool = True
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def passed(self) -> bool | None:
        if self.target is None:
            return None
        reached = self.value <= self.target if self.at_most else self.value >= self.target
        return bool(reached and self.same)


def seconds(work: Callable[[], Any], repeats: int = 1) -> float:
    """Shortest time of several runs: what the work takes when nothing else gets in the way."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
        del result
    return min(times)


def in_turns(one: Callable[[], None], other: Callable[[], None], repeats: int) -> tuple[float, float]:
    """The shortest time of each, taken in turns, so that both meet the same quiet moments.

    Not the median: on a busy machine longer work is interrupted more often, which would count against it.
    """
    pairs = [(seconds(one), seconds(other)) for _ in range(repeats)]
    return min(first for first, _ in pairs), min(second for _, second in pairs)


def in_fresh_process(task: str, *arguments: str, cache: Path | None = None) -> dict[str, Any]:
    """Run ``benchmarks.tasks`` in a process of its own and give the JSON it prints last.

    Parameters
    ----------
    cache : folder for compiled code, to start from an empty one
    """
    environment = os.environ | ({"NUMBA_CACHE_DIR": str(cache)} if cache else {})
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.tasks", task, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


class PeakMemory:
    """Bytes that a block of code needs beyond what was resident before it, by the kernel's high-water mark."""

    def __enter__(self) -> PeakMemory:
        Path("/proc/self/clear_refs").write_text("5")  # sets the high-water mark back to what is resident now
        self._before = _resident("VmRSS")
        return self

    def __exit__(self, *_: object) -> None:
        self.extra = _resident("VmHWM") - self._before


def _resident(entry: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(entry))


def machine() -> dict[str, Any]:
    """What the figures depend on besides the code."""
    cpu = next((line.split(":")[1].strip() for line in _proc("cpuinfo") if line.startswith("model name")), "unknown")
    memory = next((int(line.split()[1]) for line in _proc("meminfo") if line.startswith("MemTotal")), 0)
    packages = ("annotruth", "numpy", "numba", "scipy", "SimpleITK", "crowd-kit", "pandas")
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": cpu,
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "memory": f"{memory / 2**20:.0f} GB",
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }


def _proc(name: str) -> list[str]:
    file = Path("/proc") / name
    return file.read_text().splitlines() if file.exists() else []
