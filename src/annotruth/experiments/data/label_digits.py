"""Digits with simulated raters who give class labels: Tanno et al. 2019 on MNIST."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from annotruth.experiments.core.task import Scale, TaskData
from annotruth.experiments.data.digits import SOURCE
from annotruth.experiments.data.label_tasks import Keep, Pictures, simulated_task
from annotruth.experiments.data.preparation import halve, read_arrays
from annotruth.simulate import label_group, noisy_digits

RATERS, CLASSES = 5, 10
BUNDLED, BUNDLED_TEST = 5000, 1000
"""How many digits come with the package, and how many of them are held out at most."""
TRAINING = {"max_epochs": 8, "network": "cnn", "augment": False}
"""The network is the paper's."""
FULL = Scale({"train": 6000, "dense": 2000, "test": 2000}, TRAINING)
QUICK = Scale({"train": 2000, "dense": 1000, "test": 1000}, TRAINING)


def label_digits_task(
    *,
    kind: Literal["pairwise-flipper", "hammer-spammer"],
    skill: float,
    keep: Keep,
    seed: int,
    train: int = 6000,
    dense: int = 2000,
    test: int = 2000,
    folder: Path | None = None,
) -> TaskData:
    """Digits of 14×14 pixels and five raters of one kind; digits, raters and answers depend on the seed.

    Parameters
    ----------
    skill : the raters' mean skill
    keep : how many of the raters label each digit to learn from
    train, dense : digits to learn from, where one rater labels each, and where all do
    folder : with a file ``mnist.npz``; None = the bundled digits
    """
    count = dense if keep == "all" else train
    seen, unseen = _digits(count, test, seed, folder)
    who = "all raters label" if keep == "all" else "one rater labels"
    where = "the 5,000 bundled digits of MNIST" if folder is None else "MNIST's own training and test digits"
    return simulated_task(
        seen, unseen, label_group(kind, RATERS, CLASSES, skill, seed=seed), [str(c) for c in range(CLASSES)],
        keep=keep, seed=seed,
        about=f"{len(seen[1]):,} digits to learn from where {who} each, "
        f"{len(unseen[1]):,} held out, of {where}, at 14×14 pixels; others, and other raters, for each seed",
    )  # fmt: skip


def _digits(train: int, test: int, seed: int, folder: Path | None) -> tuple[Pictures, Pictures]:
    """Digits to learn from, and others."""
    if folder is None:
        test = min(test, BUNDLED_TEST)
        train = min(train, BUNDLED - test)
        images, _, digits = noisy_digits(train + test, seed=seed, noise=0.0)
        small = halve(images)
        return (small[:train], digits[:train]), (small[train:], digits[train:])
    arrays = read_arrays(folder, "mnist.npz", ("x_train", "y_train", "x_test", "y_test"), SOURCE)
    choice = np.random.default_rng(seed)
    parts = []
    for name, count in (("train", train), ("test", test)):
        chosen = choice.permutation(len(arrays[f"y_{name}"]))[:count]
        grey = arrays[f"x_{name}"][chosen].astype(np.float32)[:, None] / 255
        parts.append((halve(grey), arrays[f"y_{name}"][chosen].astype(np.int16)))
    return parts[0], parts[1]
