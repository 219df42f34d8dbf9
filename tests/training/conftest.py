"""Tiny cases to train on: bright boxes on a noisy ground, drawn by simulated raters; and models trained on some."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from annotruth import Annotations, Segmenter
from annotruth.simulate import simulate_masks

MakeCases = Callable[..., Annotations]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def boxes(shape: tuple[int, ...], classes: int, rng: np.random.Generator) -> np.ndarray:
    """One box per class beyond the background."""
    mask = np.zeros(shape, dtype=np.uint8)
    for number in range(1, classes):
        corner = [int(rng.integers(0, max(length // 2, 1))) for length in shape]
        mask[tuple(slice(c, c + max(length // 2, 1)) for c, length in zip(corner, shape))] = number
    return mask


@pytest.fixture(scope="session")
def make_cases() -> MakeCases:
    """Give a function that makes annotations with images and truth; ``shape`` is one for all, or one per item."""

    def make(
        items: int = 12,
        shape: tuple[int, ...] | Sequence[tuple[int, ...]] = (12, 12),
        *,
        classes: int = 2,
        channels: int = 1,
        raters: Sequence[str] = ("good", "over", "blank"),
        keep: Any = "all",
        seed: int = 0,
        groups: Sequence[str] | None = None,
    ) -> Annotations:
        rng = np.random.default_rng(seed)
        shapes = [shape] * items if isinstance(shape[0], int) else list(shape)
        truth = [boxes(one, classes, rng) for one in shapes]  # type: ignore[arg-type]
        images = [
            (mask[None] + rng.normal(0, 0.3, (channels, *mask.shape))).astype(np.float32) for mask in truth
        ]  # fmt: skip
        simulation = simulate_masks(truth, raters, n_classes=classes, keep=keep, seed=seed)
        together = np.stack(images) if len(set(shapes)) == 1 else images
        return simulation.annotations(images=together, groups=groups)

    return make


@pytest.fixture(scope="session")
def cases(make_cases: MakeCases) -> Annotations:
    return make_cases()


@pytest.fixture(scope="session")
def tiny() -> Callable[..., Segmenter]:
    """Give a function that makes an untrained Segmenter of few, small steps, that sees images as they are."""

    def make(method: str = "mean", **params: Any) -> Segmenter:
        few = {"max_epochs": 2, "batch_size": 4, "augment": False, "progress": False}
        return Segmenter(method, **{**few, **params})

    return make


@pytest.fixture(scope="session")
def weights() -> Callable[[Segmenter], dict[str, torch.Tensor]]:
    """Give a function that reads all of a model's weights."""
    return lambda model: {name: value.clone() for name, value in model.module_.state_dict().items()}


@pytest.fixture(scope="session")
def same() -> Callable[[dict[str, torch.Tensor], dict[str, torch.Tensor]], bool]:
    """Give a function that compares weights bit for bit."""
    return lambda one, other: one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.fixture(scope="session")
def thinned(make_cases: MakeCases) -> Annotations:
    """Cases of three classes with two labels an item, so that every rater missed some."""
    return make_cases(10, (12, 12), classes=3, raters=("good", "over", "under"), keep=2)


@pytest.fixture(scope="session")
def models(thinned: Annotations, tiny: Callable[..., Segmenter]) -> dict[str, Segmenter]:
    """Methods without matrices, with one matrix a rater and with one a pixel, trained on all of ``thinned``."""
    options = {"validation": 0, "max_epochs": 3, "learning_rate": 0.02}
    return {method: tiny(method, **options).fit(thinned) for method in ("mean", "global-cm", "pixel-cm")}


@pytest.fixture(scope="session")
def in_two_processes() -> Run:
    """Give a function that runs Python in a process of its own, which may begin a second one."""

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        ours = {name: value for name, value in os.environ.items() if "RANK" not in name} | {"OMP_NUM_THREADS": "1"}
        return subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=300, env=ours)

    return run
