"""Our training beside a bare PyTorch loop over the same network and data: ``python -m benchmarks.training``."""

from __future__ import annotations

import json
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
from monai.networks.nets import DynUNet
from scipy.ndimage import gaussian_filter
from torch import Tensor, nn

import annotruth as at
from annotruth.methods import DataSpec, MethodModel, make_method
from annotruth.nn import noisy_label_loss
from annotruth.training import estimator
from annotruth.training.module import MethodModule
from annotruth.training.segmenter import _batch_size
from benchmarks.measure import ROOT, Row
from benchmarks.results import report

SEED, ITEMS, RATERS, CLASSES = 0, 320, 4, 2
MOST = {64: 1.15, 192: 1.05}
"""How many times as long as a bare step one of ours may take, by side of the pictures."""
EPOCHS = {("majority", 64): 4, ("majority", 192): 2, ("pixel-cm", 64): 5, ("pixel-cm", 192): 3}
JOB_EPOCHS = 3
LEARNING_RATE, TRACE_WEIGHT = 0.01, 0.01
VOLUMES, VOLUME_SIDE, GIGABYTES = 4, 128, 6


def network(dims: int = 2) -> nn.Module:
    """A U-Net of five resolutions with instance norm, 16 channels at the first."""
    return DynUNet(
        spatial_dims=dims, in_channels=1, out_channels=CLASSES, kernel_size=[3] * 5, strides=[1, 2, 2, 2, 2],
        upsample_kernel_size=[2] * 4, filters=[16, 32, 64, 128, 256],
    )  # fmt: skip


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


def bare_model(method: str) -> MethodModel:
    """Both networks, as a training of ours begins with them."""
    torch.manual_seed(SEED)
    return make_method(method, "masks").build(DataSpec(1, RATERS, CLASSES, dims=2), network())


def segmenter(method: str, epochs: int, **options: Any) -> at.Segmenter:
    """Our defaults around the same network; the bare loop changes no image, so neither do we."""
    return at.Segmenter(method, network=network(), max_epochs=epochs, augment=False, seed=SEED, **options)


# -- steps, in turns ---------------------------------------------------------------------------------------------


def clocks() -> np.ndarray:
    """Seconds that passed, and seconds that a processor worked for this process."""
    return np.array([time.perf_counter(), time.process_time()])


def bare_in_turns(turn: Connection, method: str, side: int, batch: int, steps: int) -> None:
    """Take a bare step whenever it is our turn, and say how long it took."""
    images, masks = (torch.from_numpy(part) for part in cases(ITEMS, (side, side)))
    step = bare_step(bare_model(method), method, images, masks, batch, 10 * steps)
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


def ours_in_turns(turn: Connection, method: str, side: int) -> None:
    """Train with us, step by step when it is our turn, with the progress bar of a terminal; then send None."""
    os.environ["TTY_COMPATIBLE"] = "1"
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    images, masks = cases(ITEMS, (side, side))
    InTurns.turn = turn
    with patch.object(estimator, "MethodModule", InTurns):
        segmenter(method, EPOCHS[method, side]).fit(at.Annotations.from_masks(masks, images=images))
    turn.send(None)


def step_times(method: str, side: int) -> Iterator[Row]:
    """Steps of ours and of the bare loop, in turns, each in a process of its own."""
    training = at.Annotations.from_masks(np.zeros((round(ITEMS * 0.85), RATERS, side, side), np.uint8))
    batch = _batch_size(training, None)
    steps = EPOCHS[method, side] * -(-len(training) // batch)
    context = get_context("spawn")
    (ours, of_ours), (bare, of_bare) = context.Pipe(), context.Pipe()
    workers = [
        context.Process(target=ours_in_turns, args=(of_ours, method, side), daemon=True),
        context.Process(target=bare_in_turns, args=(of_bare, method, side, batch, steps), daemon=True),
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
    work = f"A step of {method}, batch {batch}, {side}² pixels"
    yield Row(work, f"a bare loop: {peer}", ratio, "× the time", MOST[side], at_most=True, details=details)
