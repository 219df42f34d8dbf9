"""``annotruth fuse`` on label tables that are not read into memory, as whole processes.

    python -m benchmarks.tables [--sizes 2000000 20000000 200000000] [--folder DIR]

Tables are made row group by row group, so that they may be of any size; the largest takes some 20 GB of disk. Prints
its rows and writes them to docs/results/table-speed.md and .json.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from benchmarks.data import SEED
from benchmarks.measure import Row
from benchmarks.results import report

WORKERS, CLASSES, PER_ITEM, ITERATIONS = 20_000, 5, 5, 20
GROUP_ROWS = 2**20
MOST_GB, MOST_GROWTH = 4.0, 1.1


def write_parquet(path: Path, n_answers: int) -> Path:
    """Answers of workers of differing skill, those on one item far apart: as they come in when many work at once."""
    n_items = n_answers // PER_ITEM
    step = next(step for step in range(int(n_items * 0.618) | 1, 2 * n_items) if np.gcd(step, n_items) == 1)
    rng = np.random.default_rng(SEED)
    skill = rng.uniform(0.4, 0.95, WORKERS)
    workers, labels = (
        pa.array([f"{kind}_{n}" for n in range(size)]) for kind, size in (("worker", WORKERS), ("class", CLASSES))
    )
    schema = pa.schema({"item": pa.string(), "rater": workers.type, "label": labels.type})
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for turn in range(PER_ITEM):
            for first in range(0, n_items, GROUP_ROWS):
                place = np.arange(first, min(first + GROUP_ROWS, n_items), dtype=np.int64)
                item = place * step % n_items
                worker = (mixed(item, 1) + turn * (WORKERS // PER_ITEM)) % WORKERS
                wrong = rng.random(len(item)) > skill[worker]
                label = np.where(wrong, rng.integers(0, CLASSES, len(item)), true_classes(item))
                names = pc.binary_join_element_wise("item", pa.array(item).cast(pa.string()), "_")
                writer.write_table(pa.table([names, workers.take(label_array(worker)), labels.take(label_array(label))],
                                            schema=schema))  # fmt: skip
    return path


def mixed(numbers: np.ndarray, salt: int) -> np.ndarray:
    """Numbers that look like chance, but are the same for the same number: nothing has to be kept."""
    value = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15 * (salt + 1) % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        value = (value ^ (value >> np.uint64(shift))) * np.uint64(factor)
    return ((value ^ (value >> np.uint64(31))) >> np.uint64(2)).astype(np.int64)


def true_classes(item: np.ndarray) -> np.ndarray:
    return mixed(item, 7) % CLASSES


def label_array(numbers: np.ndarray) -> pa.Array:
    return pa.array(numbers.astype(np.int32))


def accuracy(truth: Path) -> float:
    """How many items' classes were found, of the table that a fusion left; read in parts, too."""
    right = total = 0
    types = pyarrow.csv.ConvertOptions(
        include_columns=["item", "truth"], column_types={"item": pa.string(), "truth": pa.string()}
    )
    for batch in pyarrow.csv.open_csv(truth, convert_options=types):
        item, label = (
            np.char.partition(batch[name].to_numpy(zero_copy_only=False).astype(str), "_")[:, 2].astype(np.int64)
            for name in ("item", "truth")
        )
        right, total = right + int((true_classes(item) == label).sum()), total + len(item)
    return right / total


def run(command: Sequence[str]) -> dict[str, Any]:
    """Seconds and peak memory of a whole process."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=os.environ)
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{said.decode()}")
    assert isinstance(used, resource.struct_rusage)
    taken, worked = time.perf_counter() - start, used.ru_utime + used.ru_stime
    return {"seconds": taken, "seconds of all cores": worked, "GB": used.ru_maxrss / 2**20}


def fuse(table: Path, out: Path, *more: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "annotruth", "fuse", str(table), "-o", str(out), "-q", "--method", "dawid-skene"]
    return run([*command, "--option", f"max_iter={ITERATIONS}", "--option", "tol=0", *more])


def rows(home: Path, sizes: Sequence[int]) -> Iterator[Row]:
    """Measure each size, then compare the largest with the one before."""
    found = {}
    fuse(write_parquet(home / "few.parquet", 300_000), home / "few", "--stream")  # compiles what has to be compiled
    for size in sizes:
        table = write_parquet(home / f"{size}.parquet", size)
        found[size] = fuse(table, home / f"out_{size}", "--stream")
        details = found[size] | {
            "accuracy": accuracy(home / f"out_{size}" / "truth.csv"), "GB of Parquet": table.stat().st_size / 2**30,
        }  # fmt: skip
        work = f"Dawid-Skene from Parquet, {size:,} answers, {WORKERS:,} workers, {CLASSES} classes"
        yield Row(work, "none", found[size]["GB"], "GB", MOST_GB, at_most=True, details=details)
        table.unlink()
        (home / f"out_{size}" / "truth.csv").unlink()
    if len(sizes) > 1:
        before, last = sizes[-2:]
        growth = found[last]["seconds"] / found[before]["seconds"] / (last / before)
        details = {f"seconds for {size:,}": each["seconds"] for size, each in found.items()}
        work = f"the same, from {before:,} to {last:,} answers"
        yield Row(work, "itself, per answer", growth, "× the time", MOST_GROWTH, at_most=True, details=details)


def main() -> int:
    """Give 0 if every target was reached, else 1."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[2_000_000, 20_000_000, 200_000_000])
    parser.add_argument("--folder", type=Path, help="where to put the tables and results, for as long as it lasts")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as home:
        return report(
            "table-speed", "Label tables larger than memory",
            "Made by `python -m benchmarks.tables`: `annotruth fuse TABLE --method dawid-skene --stream`, "
            f"{ITERATIONS} iterations, as a whole process, from a Parquet file to `truth.csv`. Memory is the largest "
            f"resident size. Every item has {PER_ITEM} answers, which lie far apart in the file.", "",
            rows(Path(home), options.sizes), SEED,
        )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
