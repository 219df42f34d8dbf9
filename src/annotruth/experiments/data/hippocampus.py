"""Hippocampi in MR volumes, in two parts, with four simulated raters: several classes, in slices and in 3D."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from annotruth.experiments.core.task import Scale, TaskData
from annotruth.experiments.data.preparation import read_arrays
from annotruth.experiments.data.stand_in import shapes
from annotruth.simulate import simulate_masks

FULL = Scale({"train": 300, "test": 150}, {"max_epochs": 12, "batch_size": 4})
QUICK = Scale({"train": 120, "test": 40}, {"max_epochs": 5})
FULL_3D = Scale({"train": 20, "test": 8}, {"max_epochs": 40, "batch_size": 2, "patch_size": (32, 32, 32)})
QUICK_3D = Scale({"train": 8, "test": 2}, {"max_epochs": 2, "patch_size": (16, 16, 16)})
RATERS = ("good", "over", "under", "wrong")
STRENGTH = 1.0
CLASSES = ("background", "anterior", "posterior")
MIN_PART_PIXELS = 20
"""Pixels that a slice must show of each part."""
SOURCE = (
    "They are volumes (volumes, 48, 64, 48) with values 0 to 255 and labels 0, 1 (anterior), 2 (posterior) of the "
    "Medical Segmentation Decathlon, task 4 (CC BY-SA 4.0)."
)
NOTE = (
    "Raters are simulated: good, over, under, and wrong, who also takes one part for the other. The good rater's masks "
    "are the truth itself."
)
STAND_IN = "No folder was named: drawn shapes in two parts stand in for the hippocampi."


def slices_task(
    *, keep: int | Literal["all"], seed: int, train: int = 600, test: int = 200, folder: Path | None = None
) -> TaskData:
    """Slices (64×48) that show both parts, of some volumes to learn from, of others to score on.

    Parameters
    ----------
    keep : how many of the four raters label each slice to learn from
    folder : with a file ``hippocampus_msd_48x64x48.npz``; None = a stand-in
    """
    if folder is None:
        images, truth = shapes(train + test, (64, 48), seed)
        parts = [(images[:train], truth[:train]), (images[train:], truth[train:])]
        about = f"{train} drawn shapes to learn from, {test} held out, others for each seed"
    else:
        parts = slices_of_volumes(folder, seed, (train, test))
        about = f"{train} slices of hippocampi to learn from, {test} of other volumes held out, others for each seed"
    return _simulated(parts[0], parts[1], keep, seed, about)


def volumes_task(
    *, keep: int | Literal["all"], seed: int, train: int = 32, test: int = 12, folder: Path | None = None
) -> TaskData:
    """Volumes to learn from and others to score on; parameters as in :func:`slices_task`."""
    if folder is None:
        images, truth = shapes(train + test, (32, 40, 32), seed)
        parts = [(images[:train], truth[:train]), (images[train:], truth[train:])]
        about = f"{train} drawn bodies to learn from, {test} held out, others for each seed"
    else:
        parts = [(images[:n, None], truth[:n]) for (images, truth), n in zip(_split(folder, seed, 0.7), (train, test))]
        about = f"{train} volumes of hippocampi to learn from, {test} held out, others for each seed"
    return _simulated(parts[0], parts[1], keep, seed, about)


def _simulated(
    seen: tuple[np.ndarray, np.ndarray],
    held_out: tuple[np.ndarray, np.ndarray],
    keep: int | Literal["all"],
    seed: int,
    about: str,
) -> TaskData:
    drawn = simulate_masks(seen[1], RATERS, n_classes=3, strength=STRENGTH, keep=keep, seed=seed)
    drawn_held_out = simulate_masks(held_out[1], RATERS, n_classes=3, strength=STRENGTH, seed=seed + 1)
    return TaskData(
        train=drawn.annotations(images=seen[0], classes=CLASSES),
        held_out=drawn_held_out.annotations(images=held_out[0], classes=CLASSES),
        confusion=drawn_held_out.confusion_per_item,
        about=about,
    )


def slices_of_volumes(folder: Path, seed: int, sizes: tuple[int, int]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Images (n, 1, 64, 48) and truth (n, 64, 48) of so many slices to learn from, and of so many of other volumes."""
    rng = np.random.default_rng(seed)
    return [_slices(*volumes, n, rng) for volumes, n in zip(_split(folder, seed, 0.7), sizes)]


def _split(folder: Path, seed: int, share: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """Two groups of volumes, images (volumes, *spatial) in [0, 1] and labels, in a random order."""
    arrays = read_arrays(folder, "hippocampus_msd_48x64x48.npz", ("images", "labels"), SOURCE)
    order = np.random.default_rng([seed, 4]).permutation(len(arrays["images"]))
    cut = int(share * len(order))
    return [(arrays["images"][i].astype(np.float32) / 255, arrays["labels"][i]) for i in (order[:cut], order[cut:])]


def _slices(images: np.ndarray, truth: np.ndarray, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Random slices across the first axis that show both parts: (n, 1, *size) and (n, *size)."""
    images, truth = images.reshape(-1, 1, *images.shape[2:]), truth.reshape(-1, *truth.shape[2:])
    telling = np.flatnonzero([min((mask == part).sum() for part in (1, 2)) >= MIN_PART_PIXELS for mask in truth])
    chosen = rng.permutation(telling)[:n]
    return images[chosen], truth[chosen]
