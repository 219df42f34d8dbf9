"""Noisy digits with five simulated raters: the bundled data of the demo and of the papers' toy experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from annotruth.experiments.core.task import Scale, TaskData
from annotruth.experiments.data.preparation import read_arrays
from annotruth.simulate import MASK_RATERS, MaskRater, noisy_digits, simulate_masks
from annotruth.simulate.digits import INK_THRESHOLD

SETTINGS: Mapping[str, Mapping[str, Any]] = {"dense": {"keep": "all"}, "one-label": {"keep": 1}}
"""Every rater labels every digit, or one rater, drawn at random, labels each."""
FULL = Scale({"train": 1000, "test": 500}, {"max_epochs": 16})
QUICK = Scale({"train": 400, "test": 100}, {"max_epochs": 12})
SWEEP = Scale({"train": 500, "test": 500}, {"max_epochs": 16})
QUICK_SWEEP = Scale({"train": 100, "test": 50}, {"max_epochs": 6})
NOTE = "Raters are simulated: good, over, under, wrong, blank. The good rater's masks are the truth itself."
SOURCE = "It is MNIST (LeCun, Cortes, Burges), 28×28 pixels with values 0 to 255."

PEOPLE = (
    MaskRater("over", 0.2, name="slightly over"),
    MaskRater("under", 0.2, name="slightly under"),
    MaskRater("over", name="over"),
    MaskRater("under", name="under"),
    MaskRater("wrong", name="wrong 1"),
    MaskRater("wrong", name="wrong 2"),
    MaskRater("blank", 0.8, name="blank"),
)
"""The first two err by less than half a pixel, the last draws every fifth digit only."""
PEOPLE_FULL = Scale({"train": 300, "test": 120}, {"max_epochs": 12})
PEOPLE_SWEEP = Scale({"train": 200, "test": 80}, {"max_epochs": 10})
PEOPLE_QUICK = Scale({"train": 160, "test": 50}, {"max_epochs": 8})
PEOPLE_NOTE = (
    "Seven simulated raters, two of them much better than the others, and nobody perfect: their own Dice is about "
    "0.91, 0.91, 0.65, 0.33, 0.66, 0.66 and 0.21. The truth is known to the scores alone. Who the raters "
    "are was chosen while scores of other seeds were seen, and so were the method's settings (seeds 10 and 12); an "
    "earlier form of mrprism had been seen on seeds 0 to 2 as well, where it reached a soft Dice of 0.869."
)


def digits_task(
    *,
    keep: int | Literal["all"],
    seed: int,
    train: int = 1000,
    test: int = 500,
    strength: float = 1.0,
    raters: Sequence[str | MaskRater] = MASK_RATERS,
    folder: Path | None = None,
) -> TaskData:
    """Digits to learn from and digits held out; both, and the raters, depend on the seed.

    Parameters
    ----------
    keep : how many of the raters label each digit to learn from
    strength : how strongly they err
    folder : with a file ``mnist.npz``; None = the bundled digits
    """
    images, truth = noisy_digit_pool(train, test, seed, folder)
    seen = simulate_masks(truth[:train], raters, keep=keep, strength=strength, seed=seed)
    held_out = simulate_masks(truth[train:], raters, strength=strength, seed=seed + 1)
    classes = ("background", "digit")
    where = "the 5,000 bundled digits of MNIST" if folder is None else "MNIST's own training and test digits"
    return TaskData(
        train=seen.annotations(images=images[:train], classes=classes),
        held_out=held_out.annotations(images=images[train:], classes=classes),
        confusion=held_out.confusion_per_item,
        about=f"{train:,} digits to learn from, {test:,} held out, of {where}; others, and other masks, for each seed",
    )


def seven_raters_task(
    *,
    seed: int,
    train: int = 500,
    test: int = 200,
    keep: int | Literal["all"] = "all",
    folder: Path | None = None,
) -> TaskData:
    """Digits by :data:`PEOPLE`; others, and other masks, for each seed. Which digit it is, is an item's diagnosis.

    Parameters
    ----------
    keep : how many of the raters label each digit to learn from
    folder : with a file ``mnist.npz``; None = the bundled digits
    """
    task = digits_task(keep=keep, seed=seed, train=train, test=test, raters=PEOPLE, folder=folder)
    names = map(str, digits_of_pool(train, test, seed, folder)[:train].tolist())
    return replace(task, options={"diag": {"diagnosis": dict(zip(task.train.items, names))}})


def digit_classes_task(
    *, seed: int, train: int = 1000, test: int = 500, keep: int | Literal["all"] = "all", folder: Path | None = None
) -> TaskData:
    """Ink whose class is the digit, eleven classes, by raters good, over, under and wrong, who takes digits for others.

    Always of the bundled digits; ``folder`` is for the other task of an experiment.
    """
    images, ink, digits = noisy_digits(train + test, seed=seed)
    truth = (ink * (digits[:, None, None] + 1)).astype(np.uint8)
    raters = ("good", "over", "under", "wrong")
    seen = simulate_masks(truth[:train], raters, n_classes=11, keep=keep, seed=seed)
    held_out = simulate_masks(truth[train:], raters, n_classes=11, seed=seed + 1)
    classes = ("background", *map(str, range(10)))
    return TaskData(
        train=seen.annotations(images=images[:train], classes=classes),
        held_out=held_out.annotations(images=images[train:], classes=classes),
        confusion=held_out.confusion_per_item,
        about=f"{train:,} digits to learn from, {test:,} held out, with the digit as the class of its ink",
    )


def noisy_digit_pool(
    train: int, test: int, seed: int, folder: Path | None, ink: int = INK_THRESHOLD
) -> tuple[np.ndarray, np.ndarray]:
    """Noisy images (items, 1, 28, 28) and masks of the ink (items, 28, 28), those to learn from first."""
    if folder is None:
        images, truth, _ = noisy_digits(train + test, seed=seed, ink=ink)
        return images, truth
    grain = np.random.default_rng(seed).spawn(2)[1]
    grey = _chosen(("x_train", "x_test"), (train, test), seed, folder)
    images = grey.astype(np.float32) / 255 + 0.25 * grain.standard_normal(grey.shape, dtype=np.float32)
    return np.clip(images, 0, 1)[:, None], (grey > ink).astype(np.uint8)


def digits_of_pool(train: int, test: int, seed: int, folder: Path | None) -> np.ndarray:
    """Which digit each item of :func:`noisy_digit_pool` is: (items,)."""
    if folder is None:
        return noisy_digits(train + test, seed=seed)[2]
    return _chosen(("y_train", "y_test"), (train, test), seed, folder)


def _chosen(names: tuple[str, str], sizes: tuple[int, int], seed: int, folder: Path) -> np.ndarray:
    """So many entries of each of two arrays, one after the other; the same places for the same seed."""
    arrays = read_arrays(folder, "mnist.npz", names, SOURCE)
    choice = np.random.default_rng(seed).spawn(2)[0]
    return np.concatenate([arrays[name][choice.permutation(len(arrays[name]))[:n]] for name, n in zip(names, sizes)])
