"""One training step with thousands of raters beside one with five: ``python -m benchmarks.raters``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import numpy as np
import torch

from annotruth import Annotations
from annotruth.data.answers import sort_answers
from annotruth.methods import DataSpec, make_method
from annotruth.training.datasets import LabelTableDataset, Standard
from annotruth.training.module import RowAdamW
from benchmarks.measure import PeakMemory, Row, in_turns
from benchmarks.results import report

SEED, REPEATS = 0, 100
FEW, MANY = 5, 5000
ITEMS, BATCH, CLASSES, MANY_CLASSES = 4000, 50, 10, 1000
MOST = 1.5
"""How many times as long a step with many raters may take."""
DATA = {"features": (64,), "pictures": (1, 28, 28)}


def items(raters: int, classes: int, size: tuple[int, ...]) -> LabelTableDataset:
    """Random items with random answers of two or three raters each."""
    rng = np.random.default_rng(SEED)
    who = [rng.choice(raters, size=count, replace=False) for count in rng.integers(2, 4, ITEMS)]
    item, rater = np.repeat(np.arange(ITEMS), [len(some) for some in who]), np.concatenate(who)
    annotations = Annotations(
        kind="labels", items=[str(number) for number in range(ITEMS)], classes=[str(c) for c in range(classes)],
        raters=[str(number) for number in range(raters)], images=rng.normal(size=(ITEMS, *size)).astype(np.float32),
        answers=sort_answers(item, rater, rng.integers(0, classes, len(item))),
    )  # fmt: skip
    return LabelTableDataset(annotations).standardise(Standard([0.0] * size[0], [1.0] * size[0]))


def training(method: str, raters: int, classes: int, size: tuple[int, ...]) -> Callable[[], None]:
    """A step: the next batch put together, loss, gradients, optimiser; after the warm-up."""
    torch.manual_seed(SEED)
    made, data = make_method(method, "labels"), items(raters, classes, size)
    parts = made.build(DataSpec(size[0], raters, classes, len(size) - 1, "labels"))
    if method == "global-cm":
        parts.get_buffer("stage").fill_(1)
    optimiser = RowAdamW(parts.parameters(), lr=1e-3, fused=True)
    order = iter(np.random.default_rng(SEED).integers(0, ITEMS, (10_000, BATCH)).tolist())

    def step() -> None:
        loss, _ = made.loss(parts, data.__getitems__(next(order)), progress=0.9)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    return step


def run() -> Iterator[Row]:
    """Time of a step by method and kind of data, and memory with a thousand classes."""
    for kind, size in DATA.items():
        for method in ("global-cm", "global-cm-lowrank", "crowd-layer", "max-mig"):
            with_many, with_few = (training(method, raters, CLASSES, size) for raters in (MANY, FEW))
            many, few = in_turns(with_many, with_few, REPEATS)
            details = {"ms": round(1000 * many, 2), "ms with few": round(1000 * few, 2)}
            work = f"A step of {method} on {kind}, {MANY:,} raters, {CLASSES} classes"
            yield Row(work, f"{FEW} raters", many / few, "× the time", MOST, at_most=True, details=details)
    with PeakMemory() as peak:
        training("global-cm-lowrank", MANY, MANY_CLASSES, DATA["features"])()
    full = MANY * MANY_CLASSES**2 * 4
    work = f"A first step of global-cm-lowrank, {MANY:,} raters, {MANY_CLASSES:,} classes"
    details = {"MB": round(peak.extra / 1e6), "MB of full matrices": round(full / 1e6)}
    yield Row(work, "full matrices", peak.extra / full, "× the memory", 0.05, at_most=True, details=details)


def main() -> int:
    """Give 0 if every target was reached, else 1."""
    return report(
        "raters-speed",
        "Speed with thousands of raters",
        f"Made by `python -m benchmarks.raters`. Each of {ITEMS:,} random items is answered by two or three raters. A "
        f"step takes {BATCH} items: the batch is put together, loss, gradients, and one step of the optimiser. Times "
        f"are the shortest of {REPEATS} steps, with many raters and with few in turns, after the warm-up. The network "
        "is the default one: a small one makes whatever the raters cost show most.",
        "",
        run(),
        SEED,
    )


if __name__ == "__main__":
    sys.exit(main())
