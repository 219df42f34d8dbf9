"""Time and memory of a queue: a million items, ten million answers, 5,000 raters; and 1,000 cases of 512².

    python -m benchmarks.next [--scale 20] [--only table]

Both are to take less than 60 s and the table less than 4 GB; ``--scale 20`` takes a twentieth of the items. The fusion
before it is told apart. Writes docs/results/next-speed.md and .json at full size.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
import warnings
from typing import Any

import numpy as np

import annotruth as at
from annotruth.choosing.queue.fusing import usual_estimator
from benchmarks import data
from benchmarks.measure import ROOT
from benchmarks.results import write_table

SECONDS, GIGABYTES = 60, 4


def of_table(scale: int) -> dict[str, Any]:
    """A million items, ten answers each, ten classes, 5,000 raters; a budget of 100,000 labels, 50 a rater at most."""
    n_items, n_raters, n_classes = 1_000_000 // scale, max(5_000 // scale, 100), 10
    answers, _ = data.answers(10 * n_items, n_raters, n_classes, per_item=10)
    annotations = data.table(answers, n_items, n_raters, n_classes)
    return _measured(annotations, 100_000 // scale, capacity=50)


def of_masks(scale: int) -> dict[str, Any]:
    """1,000 cases of 512² in memory, five raters of whom two or three labelled each; a budget of 500 labels."""
    n_cases = 1_000 // scale
    rng = np.random.default_rng(data.SEED)
    y, x = np.mgrid[:512, :512]
    masks = []
    for _ in range(n_cases):
        centre, radius = rng.uniform(150, 360, 2), rng.uniform(60, 140)
        distance = np.hypot(y - centre[0], x - centre[1]) + 6 * np.sin(x / 17) * np.cos(y / 13)
        drawn = np.stack([distance < radius + shift for shift in rng.normal(0, 4, 5)]).astype(np.uint8)
        drawn[rng.permutation(5)[: rng.integers(2, 4)]] = 255
        masks.append(drawn)
    return _measured(at.Annotations.from_masks(masks, classes=2), 500 // scale, capacity=None)


def _measured(annotations: at.Annotations, budget: int, capacity: int | None) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        fused = usual_estimator(annotations).fit(annotations)
        fitted, worked = time.perf_counter(), time.process_time()
        queue = at.next_labels(fused, annotations, budget, capacity=capacity)
    ended, of_processor = time.perf_counter(), time.process_time() - worked
    return {
        "annotations": repr(annotations), "budget": budget, "labels": len(queue),
        "seconds to fuse": round(fitted - start, 2), "seconds for the queue": round(ended - fitted, 2),
        "of them, of the processor": round(of_processor, 2),
        "peak memory, GB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "summary": queue.summary,
    }  # fmt: skip


def _write(found: dict[str, dict[str, Any]]) -> None:
    """Write the page and its numbers."""
    words = {"table": "a million items, ten million answers, 5,000 raters", "masks": "1,000 cases of 512², five raters"}
    rows = [
        {
            "labels": words[name], "budget": row["budget"], "seconds to fuse": row["seconds to fuse"],
            "seconds for the queue": row["seconds for the queue"],
            "of them, of the processor": row["of them, of the processor"], "target": f"< {SECONDS} s",
            "peak memory, GB": row["peak memory, GB"],
            "target of memory": f"< {GIGABYTES} GB" if name == "table" else "",
        }
        for name, row in found.items()
    ]  # fmt: skip
    said = (
        "Where others work on the machine, the processor's seconds tell what the queue itself takes. Peak memory is "
        "that of the whole process so far, the data and the fusion too."
    )
    title, folder = "Speed of a queue of labels", ROOT / "docs" / "results"
    write_table(folder, "next-speed", title, "python -m benchmarks.next", rows, said)


def main() -> int:
    """Give 0 if the targets were reached, else 1."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.next", description=__doc__)
    parser.add_argument("--scale", type=int, default=1, help="divide all sizes by this")
    parser.add_argument("--only", choices=["table", "masks"], help="measure one of the two")
    options = parser.parse_args()
    found = {}
    for name, measure in (("table", of_table), ("masks", of_masks)):
        if options.only in (None, name):
            found[name] = measure(options.scale)
            print(json.dumps(found[name], indent=1), flush=True)
    if options.scale == 1 and options.only is None:
        _write(found)
    slow = [name for name, row in found.items() if row["seconds for the queue"] > SECONDS]
    large = found.get("table", {}).get("peak memory, GB", 0) > GIGABYTES
    return 1 if slow or large else 0


if __name__ == "__main__":
    sys.exit(main())
