"""Our training beside a bare PyTorch loop over the same network and data: ``python -m benchmarks.training``."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
import torch.nn.functional as F
from scipy.ndimage import gaussian_filter
from torch import Tensor

import annotruth as at
from annotruth.methods import DataSpec, MethodModel, make_method
from annotruth.nn import noisy_label_loss
from annotruth.training import estimator
from annotruth.training.module import MethodModule
from annotruth.training.plan import Plan, plan_sizes
from benchmarks.measure import ROOT, Row
from benchmarks.results import report

SEED, RATERS, CLASSES = 0, 4, 2
ITEMS, TRAINED = 320, 272
"""Pictures, and those that are not held out."""
MOST = {64: 1.15, 192: 1.05}
"""How many times as long as a bare step one of ours may take, by side of the pictures."""
EPOCHS, JOB_EPOCHS = {64: 2, 192: 1}, 4
LEARNING_RATE, TRACE_WEIGHT = 0.01, 0.01
VOLUMES, VOLUME_SIDE, GIGABYTES = 4, 128, 6
MANY_VOLUMES_BATCH = 4
"""Patches in a batch, by default, where there are 256 volumes or more."""


def cases(items: int, size: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Noisy images (items, 1, *spatial) of blobs, and raters' masks (items, raters, *spatial) of them."""
    rng = np.random.default_rng(SEED)
    images, masks = np.empty((items, 1, *size), np.float32), np.empty((items, RATERS, *size), np.uint8)
    for image, mask in zip(images, masks):
        height = gaussian_filter(rng.normal(size=size), size[0] / 16)
        height /= height.std()
        image[0] = height + rng.normal(size=size)
        mask[:] = [height > threshold for threshold in np.linspace(0.6, 1.4, RATERS)]
    return images, masks


def bare_step(
    model: MethodModel, method: str, images: Tensor, masks: Tensor, batch: int, steps: int
) -> Callable[[], None]:
    """The next step of a loop as one would write it without us, over items in memory, in random order.

    majority: cross-entropy of the vote. pixel-cm: two networks, and between them the loss of Zhang et al.
    """
    groups: list[dict[str, Any]] = [{"params": list(model.truth.parameters()), "lr": LEARNING_RATE}]
    if method == "pixel-cm":
        groups.append({"params": list(model.annotators.parameters()), "lr": LEARNING_RATE / 10})
    optimiser = torch.optim.AdamW(groups, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, [group["lr"] for group in groups], total_steps=steps)
    votes = (masks.sum(dim=1) * 2 > RATERS).long()
    order: list[Tensor] = []

    def step() -> None:
        if not order:
            order.extend(torch.randperm(len(images)).split(batch))
        chosen = order.pop()
        optimiser.zero_grad()
        if method == "majority":
            loss = F.cross_entropy(model.truth(images[chosen]), votes[chosen])
        else:
            log_truth = model.truth(images[chosen]).log_softmax(dim=1)
            loss, _ = noisy_label_loss(log_truth, model.annotators(images[chosen]), masks[chosen], TRACE_WEIGHT)
        loss.backward()
        optimiser.step()
        schedule.step()

    return step


def planned(method: str, plan: Plan) -> MethodModel:
    """The networks that a training of ours would begin with."""
    torch.manual_seed(SEED)
    return make_method(method, "masks").build(DataSpec(1, RATERS, CLASSES, plan.network.dims, network=plan.network))


def segmenter(method: str, epochs: int, augment: bool, **options: Any) -> at.Segmenter:
    """All defaults. The bare loop changes no image, so with augmentation we do more."""
    return at.Segmenter(method, max_epochs=epochs, augment=augment, seed=SEED, **options)


# -- steps, in turns ---------------------------------------------------------------------------------------------


def clocks() -> np.ndarray:
    """Seconds that passed, and seconds that a processor worked for this process."""
    return np.array([time.perf_counter(), time.process_time()])


def bare_in_turns(turn: Connection, method: str, side: int, plan: Plan, steps: int) -> None:
    """Take a bare step whenever it is our turn, and say how long it took."""
    images, masks = (torch.from_numpy(part) for part in cases(ITEMS, (side, side)))
    step = bare_step(planned(method, plan), method, images, masks, plan.batch_size, steps)
    while turn.recv():
        begun = clocks()
        step()
        turn.send((clocks() - begun, ""))


class InTurns(MethodModule):
    """Trains as ever, but waits for its turn after every step, and says how long the step took.

    That is all the time between two turns: the next batch, logging and the progress bar included; what comes between
    two epochs is not.
    """

    turn: Connection

    def on_train_epoch_start(self) -> None:
        super().on_train_epoch_start()
        self._wait()

    def on_train_batch_end(self, *_: Any) -> None:
        self.turn.send((clocks() - self._begun, self._stage()))
        if not self.trainer.is_last_batch:
            self._wait()

    def _wait(self) -> None:
        self.turn.recv()
        self._begun = clocks()

    def _stage(self) -> str:
        if not hasattr(self.model, "joint_from"):
            return "training"
        if self.progress < self.model.weighed_from:
            return "labels are taken at their word"
        return "raters are weighed" if self.progress < self.model.joint_from else "truth and errors are learnt"


def ours_in_turns(turn: Connection, method: str, side: int, augment: bool, precision: str) -> None:
    """Train with us, step by step when it is our turn, with the progress bar of a terminal; then send None."""
    os.environ["TTY_COMPATIBLE"] = "1"
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    images, masks = cases(ITEMS, (side, side))
    InTurns.turn = turn
    with patch.object(estimator, "MethodModule", InTurns):
        segmenter(method, EPOCHS[side], augment, precision=precision).fit(
            at.Annotations.from_masks(masks, images=images)
        )
    turn.send(None)


def step_times(method: str, side: int, augment: bool = False, precision: str = "full") -> Row:
    """Steps of ours and of the bare loop, in turns, each in a process of its own; the bare ones are in 32 bits."""
    plan = plan_sizes(at.Annotations.from_masks(np.zeros((ITEMS, RATERS, side, side), np.uint8)))
    steps = EPOCHS[side] * -(-TRAINED // plan.batch_size)
    context = get_context("spawn")
    (ours, of_ours), (bare, of_bare) = context.Pipe(), context.Pipe()
    workers = [
        context.Process(target=ours_in_turns, args=(of_ours, method, side, augment, precision), daemon=True),
        context.Process(target=bare_in_turns, args=(of_bare, method, side, plan, steps), daemon=True),
    ]
    for worker in workers:
        worker.start()
    times: dict[str, list[np.ndarray]] = {}
    bare_times = []
    for step in range(steps):
        ours.send(True)
        taken, stage = ours.recv()
        bare.send(True)
        bare_taken, _ = bare.recv()
        if step:  # the first step of a process also loads what it needs
            times.setdefault(stage, []).append(taken)
            bare_times.append(bare_taken)
    ours.recv()
    bare.send(False)
    for worker in workers:
        worker.join()
    usual = np.median(bare_times, axis=0)
    mean = sum(np.median(some, axis=0) * len(some) for some in times.values()) / (steps - 1)
    ratio, of_work = mean / usual
    details: dict[str, Any] = {"ms": round(1000 * mean[0], 1), "ms of the peer": round(1000 * usual[0], 1)}
    details |= {"× the processor's time": of_work, "steps": steps - 1}
    if len(times) > 1:
        details |= {f"× while {stage}": np.median(some, axis=0)[0] / usual[0] for stage, some in times.items()}
    peer = "cross-entropy" if method == "majority" else "two networks and the loss between them"
    changed = ", augmented" * augment + ", in bfloat16" * (precision == "mixed")
    work = f"A step of {method}, batch {plan.batch_size}, {side}² pixels{changed}"
    most = None if changed else MOST[side]
    return Row(work, f"a bare loop: {peer}", ratio, "× the time", most, at_most=True, details=details)


# -- whole trainings ---------------------------------------------------------------------------------------------


def bare_job(method: str, folder: Path) -> None:
    """From files to a file with the trained networks, without us."""
    images, masks = (torch.from_numpy(np.load(folder / f"{name}.npy")) for name in ("images", "masks"))
    images, masks = images[:TRAINED], masks[:TRAINED]
    images = (images - images.mean()) / images.std()
    plan = Plan.read(folder / "plan.json")
    model, steps = planned(method, plan), JOB_EPOCHS * -(-TRAINED // plan.batch_size)
    step = bare_step(model, method, images, masks, plan.batch_size, steps)
    for _ in range(steps):
        step()
    torch.save(model.state_dict(), folder / "bare.pt")


def our_job(method: str, folder: Path) -> None:
    """The same with us, who also look at held-out labels after every epoch, and count the raters' labels at the end."""
    images, masks = (np.load(folder / f"{name}.npy") for name in ("images", "masks"))
    segmenter(method, JOB_EPOCHS, augment=False, progress=False).fit(
        at.Annotations.from_masks(masks, images=images)
    ).save(folder / "ours.annotruth")


def whole_training(method: str, side: int) -> Row:
    """Both from the start of the process until the model is written."""
    with tempfile.TemporaryDirectory() as folder:
        images, masks = cases(ITEMS, (side, side))
        np.save(Path(folder) / "images.npy", images)
        np.save(Path(folder) / "masks.npy", masks)
        plan = plan_sizes(at.Annotations.from_masks(masks))
        (Path(folder) / "plan.json").write_text(plan.to_json())
        pairs = [(alone("our_job", method, folder)[0], alone("bare_job", method, folder)[0]) for _ in range(2)]
    ours, bare = (min(times) for times in zip(*pairs))
    work = f"A training with {method}: {JOB_EPOCHS} epochs of {TRAINED} pictures of {side}²"
    details = {"seconds": round(ours, 1), "seconds of the peer": round(bare, 1)}
    return Row(work, "a bare loop", ours / bare, "× the time", None, at_most=True, details=details)


def volume_job(method: str, _: Path, batch_size: int | None = None) -> None:
    """An epoch on volumes, both networks being trained from its first step on."""
    images, masks = cases(VOLUMES, (VOLUME_SIDE,) * 3)
    model = at.Segmenter(method, batch_size=batch_size, max_epochs=1, progress=False, warmup=0.0)
    model.fit(at.Annotations.from_masks(masks, images=images))


def large_volume_job(method: str, folder: Path) -> None:
    """The same with batches as they would be with many volumes."""
    volume_job(method, folder, MANY_VOLUMES_BATCH)


def memory(method: str) -> Iterator[Row]:
    """The most that a process ever had in memory that trained on volumes."""
    work = f"A training with {method} on {VOLUMES} volumes of {VOLUME_SIDE}³, {RATERS} raters, one epoch"
    for job, batch in (("volume_job", ""), ("large_volume_job", f", batch {MANY_VOLUMES_BATCH}")):
        taken, most = alone(job, method, ".")
        details = {"seconds": round(taken, 1)}
        yield Row(f"{work}{batch}", "a laptop", most / 1e9, "GB", GIGABYTES, at_most=True, details=details)


JOBS: dict[str, Callable[[str, Path], None]] = {
    job.__name__: job for job in (bare_job, our_job, volume_job, large_volume_job)
}


def alone(job: str, method: str, folder: str) -> tuple[float, int]:
    """Seconds that a job takes in a process of its own, with its start, and the most bytes that it had in memory."""
    start = time.perf_counter()
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.training", job, method, folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    return time.perf_counter() - start, int(done.stdout.splitlines()[-1])


def run() -> Iterator[Row]:
    """Time of steps, of whole trainings, and memory."""
    for side in MOST:
        for method in ("majority", "pixel-cm"):
            yield step_times(method, side)
            yield step_times(method, side, precision="mixed")
        yield step_times("majority", side, augment=True)
    for method in ("majority", "pixel-cm"):
        yield whole_training(method, min(MOST))
    yield from memory("pixel-cm")


def main() -> int:
    """Give 0 if every target was reached, else 1."""
    if sys.argv[1:2] and sys.argv[1] in JOBS:
        JOBS[sys.argv[1]](sys.argv[2], Path(sys.argv[3]))
        print(1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        return 0
    return report(
        "training-speed",
        "Speed and memory of training",
        "Made by `python -m benchmarks.training`. The bare loop is a few lines of PyTorch over the same networks: "
        "items in memory, in random order; forward, loss, backward, AdamW, one-cycle schedule. "
        f"There are {ITEMS} simulated pictures with {RATERS} raters; network and batch are our defaults for them. Both "
        "train in processes of their own and take steps in turns; of the times of all steps but the first, medians are "
        "compared (of pixel-cm, of each of its stages). Ours are with logging, checks for values that are not finite, "
        "and the progress bar; without augmentation and in 32 bits, where nothing else is said. Whole "
        "trainings last from the start of the process until the model is written, the shorter of two; ours also hold "
        "items out, look at them after "
        "every epoch, and count the raters' labels at the end. Memory is the most that a process ever had, libraries "
        "included.",
        "What makes a step shorter than a bare one is memory: a bare loop returns large tensors to the system and has "
        "them mapped and cleared anew in the next step; we keep them until the training ends.\n\n"
        "Tried on the same network and not taken, in a processor's time for a step of 16 pictures: channels-last takes "
        "15 % longer at 64² and 12 % longer at 192², because PyTorch's instance norm copies its input back; "
        "`torch.compile` saves 14 % at 64², but compiles for some minutes first, as long as thousands of steps take, "
        "and needs a C++ compiler.",
        run(),
        SEED,
    )


if __name__ == "__main__":
    sys.exit(main())
