"""A training step of mrprism beside a plain U-Net of its encoder, and its memory: ``python -m benchmarks.prism``."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import torch

from annotruth.methods import Batch, DataSpec, make_method
from benchmarks.measure import ROOT, PeakMemory, Row, in_turns
from benchmarks.results import report

SEED, REPEATS, RATERS = 0, 25, 7
SIDE, LARGE, LARGER = 128, 256, 512
TIMED, BATCH = 3, 2
"""Items of a step whose time is taken, one per recurrence, so that every step costs the same; and of the others."""
GIGABYTES = 6


def training_step(method: str, side: int, items: int = BATCH) -> Callable[[], None]:
    """One step on a batch of pictures of this side: forward, backward, and the optimiser's."""
    torch.manual_seed(SEED)
    made, shape = make_method(method, task="masks"), DataSpec(channels=1, raters=RATERS, classes=2, dims=2)
    parts = made.build(shape)
    optimiser = torch.optim.AdamW(parts.parameters(), fused=True)  # as in training
    labels = torch.randint(0, 2, (items, made.n_targets(shape), side, side), dtype=torch.uint8)
    batch = Batch(torch.randn(items, 1, side, side), labels)

    def step() -> None:
        optimiser.zero_grad()
        made.loss(parts, batch, progress=0.5)[0].backward()
        optimiser.step()

    return step


def peak_memory(side: int) -> int:
    """Bytes that three steps need at their worst moment, in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.prism", "memory", str(side)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    return int(done.stdout.splitlines()[-1])


def run() -> Iterator[Row]:
    """Time of a step, memory, and how memory grows."""
    ours, plain = training_step("mrprism", SIDE, TIMED), training_step("majority", SIDE, TIMED)
    for step in (ours, plain):
        step()
    slow, fast = in_turns(ours, plain, REPEATS)
    work = f"Training step of mrprism, {RATERS} raters, three recurrences"
    details = {"seconds": slow, "seconds of the peer": fast}
    peer = "a plain U-Net of the same encoder, on majority votes"
    yield Row(
        f"{work}, batch {TIMED}, {SIDE}² pixels", peer, slow / fast, "× the time", 4, at_most=True, details=details
    )

    small, large = peak_memory(LARGE), peak_memory(LARGER)
    yield Row(
        f"{work}, batch {BATCH}, {LARGE}² pixels",
        "a laptop",
        small / 2**30,
        "GiB",
        GIGABYTES,
        at_most=True,
        details={"MB": round(small / 1e6)},
    )
    details = {"MB": round(large / 1e6), f"MB at {LARGE}²": round(small / 1e6)}
    yield Row(
        f"Memory at {LARGER}² pixels",
        f"{LARGE}² pixels",
        large / small,
        "× the memory",
        4.2,
        at_most=True,
        details=details,
    )


def main() -> int:
    """Give 0 if every target was reached, else 1."""
    if sys.argv[1:2] == ["memory"]:
        training_step("mrprism", 32)()  # so that what is loaded at the first call does not count
        with PeakMemory() as peak:
            step = training_step("mrprism", int(sys.argv[2]))
            for _ in range(3):
                step()
        print(peak.extra)
        return 0
    return report(
        "prism-speed",
        "Speed and memory of mrprism",
        "Made by `python -m benchmarks.prism`. A step is forward, backward and the optimiser's, in single precision. "
        f"Times are the shortest of {REPEATS} steps each, taken in turns. Memory is what three steps add to a process "
        "of its own at their worst moment, weights and inputs included, libraries not.",
        "Each item takes part in one of the three recurrences per step, so that a step costs one recurrence with "
        "gradients and one without. Places attend to each other within windows of 4×4: memory grows "
        "with the pixels.",
        run(),
        SEED,
    )


if __name__ == "__main__":
    sys.exit(main())
