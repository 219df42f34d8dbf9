"""``annotruth fuse`` on folders, as whole processes, beside a script that calls SimpleITK for each case.

    python -m benchmarks.folders [--shrink 50]

Prints its rows and writes them to docs/results/fusion-folders.md and .json.
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

import annotruth as at
from annotruth.data.annotations import Lazy
from annotruth.io import write_case_folder
from benchmarks.data import SEED
from benchmarks.measure import ROOT, Row
from benchmarks.results import report

REPEATS = 3
_NUMBERS = itertools.count()
LONG = 60  # seconds: a peer that takes longer is run once


def rows(home: Path, shrink: int) -> Iterator[Row]:
    """Measure; with ``shrink``, on so many times fewer cases."""
    yield from _start_up(home)
    small = make_folder(home / "small", max(120 // shrink, 3), (192, 256), 3, ".png")
    yield _beside_itk("120 cases of 192×256 pixels, 3 raters, PNG", small, home, 2)
    large = make_folder(home / "large", max(1000 // shrink, 3), (512, 512), 5, ".png")
    yield _beside_itk("1,000 cases of 512×512 pixels, 5 raters, PNG", large, home, 6)
    yield _two_jobs("the same with --jobs 2", large, home, 1.5)
    yield _two_jobs("the 120 cases of 192×256 pixels with --jobs 2", small, home, 1)
    tiny = make_folder(home / "tiny", max(5000 // shrink, 3), (64, 64), 5, ".png")
    (tiny / "dataset.json").unlink()
    yield _two_jobs("5,000 cases of 64×64 pixels, 5 raters, no dataset.json, with --jobs 2", tiny, home, 1)
    volumes = make_folder(home / "volumes", max(50 // shrink, 2), (256, 256, 128), 4, ".nii.gz")
    yield _beside_itk("50 volumes of 256×256×128 voxels, 4 raters, NIfTI", volumes, home, 3)
    script = [sys.executable, str(ROOT / "benchmarks" / "io_script.py"), str(volumes)]
    ours, alone = _in_turns(lambda out: _fuse(volumes, out), lambda out: _run([*script, str(out)]), home=home)
    yield Row("the same", "reading and writing alone, by nibabel in threads", ours / alone, "× its time", 1.3,
              at_most=True, details={"seconds": ours, "seconds of reading and writing": alone})  # fmt: skip


def make_folder(folder: Path, n_cases: int, shape: tuple[int, ...], n_raters: int, suffix: str) -> Path:
    """Write a case folder of balls that raters draw a little differently."""
    grids = np.meshgrid(*(np.arange(size, dtype=np.float32) for size in shape), indexing="ij")

    def masks(case: int) -> np.ndarray:
        rng = np.random.default_rng([SEED, case])
        centre, radius = rng.uniform(0.35, 0.65, len(shape)) * shape, rng.uniform(0.1, 0.25) * min(shape)
        drawn = []
        for _ in range(n_raters):
            off = centre + rng.normal(0, 0.02 * min(shape), len(shape))
            distance = sum((grid - place) ** 2 for grid, place in zip(grids, off))
            drawn.append(distance < (radius * rng.normal(1, 0.08)) ** 2)
        return np.stack(drawn).astype(np.uint8)

    lazy = [Lazy(lambda case=case: masks(case), (n_raters, *shape)) for case in range(n_cases)]
    annotations = at.Annotations.from_masks(lazy, classes=["background", "ball"])
    return write_case_folder(folder, annotations, suffix)


def _start_up(home: Path) -> Iterator[Row]:
    taken = _best(lambda out: _run([sys.executable, "-m", "annotruth", "fuse", "--help"]), home)
    yield Row("annotruth fuse --help, whole process", "none", taken, "s", 0.3, at_most=True)
    few = make_folder(home / "few", 1, (192, 256), 3, ".png")
    taken = _best(lambda out: _fuse(few, out), home)
    yield Row("annotruth fuse of one case, whole process", "none", taken, "s", 1.0, at_most=True)


def _beside_itk(work: str, cases: Path, home: Path, target: float) -> Row:
    script = str(ROOT / "benchmarks" / "itk_script.py")
    ours, peer = [], []
    for _ in range(REPEATS):
        ours.append(_best(lambda out: _fuse(cases, out), home, repeats=1))
        if not peer or peer[0] < LONG:
            peer.append(_best(lambda out: _run([sys.executable, script, str(cases), str(out)]), home, repeats=1))
    n_cases = len(list(next((cases / "raters").iterdir()).iterdir()))
    details = {"seconds": min(ours), "peer seconds": min(peer), "cases": n_cases}
    return Row(work, "SimpleITK script, one process", min(peer) / min(ours), "× faster", target, details=details)


def _two_jobs(work: str, cases: Path, home: Path, target: float) -> Row:
    one, two = _in_turns(*(lambda out, jobs=jobs: _fuse(cases, out, "--jobs", jobs) for jobs in ("1", "2")), home=home)
    details = {"seconds, one core": one, "seconds, two": two}
    return Row(work, "itself with --jobs 1", one / two, "× faster", target, details=details)


def _fuse(cases: Path, out: Path, *more: str) -> None:
    _run([sys.executable, "-m", "annotruth", "fuse", str(cases), "-o", str(out), "-q", *more])


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, env=os.environ)


def _in_turns(*works, home: Path) -> list[float]:
    """Shortest time of each, one after the other in turns: what else goes on meets all alike."""
    times = [[_best(work, home, repeats=1) for work in works] for _ in range(REPEATS)]
    return [min(own) for own in zip(*times)]


def _best(work, home: Path, repeats: int = REPEATS) -> float:
    """Shortest time of a process that writes into a fresh folder; none is removed in between.

    Where thousands of files were removed a moment ago, ext4 takes ten times as long to make new ones.
    """
    times = []
    for _ in range(repeats):
        out = home / f"out{next(_NUMBERS)}"
        start = time.perf_counter()
        work(out)
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.folders", description=__doc__)
    parser.add_argument("--shrink", type=int, default=1, help="so many times fewer cases, to try it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        return report(
            "fusion-folders", "Speed of fusing folders",
            "Made by `python -m benchmarks.folders`. Whole processes, imports included, each at its best of three; a "
            f"script of others that takes more than {LONG} seconds is run once.", "",
            rows(Path(home), options.shrink), SEED,
        )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
