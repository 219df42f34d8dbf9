"""CIFAR-10: pictures with simulated raters (Tanno et al. 2019), and with three real answers each (CIFAR-10N)."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from PIL import Image

from annotruth.data.annotations import Annotations
from annotruth.experiments.core.task import Scale, TaskData
from annotruth.experiments.data.label_tasks import Keep, Pictures, simulated_task, unlabelled
from annotruth.experiments.data.preparation import halve, read_arrays
from annotruth.methods import Task
from annotruth.metrics import confusion_matrix
from annotruth.nn import small_cnn
from annotruth.simulate import cifar10_group, hammer_spammer, noisy_digits, simulate_labels
from annotruth.training import Classifier
from annotruth.training.recipes import RECIPES

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
TRAIN, TEST = "cifar10n_train.npz", "cifar10_test_h.npz"
SOURCE = (
    "It is CIFAR-10 (Krizhevsky): jpeg_bytes, all files one after the other, jpeg_offsets (items + 1,), labels; to "
    "learn from also annot (items, 3), the answers of CIFAR-10N (Wei et al. 2022)."
)
STAND_IN = (
    "A stand-in: bundled digits in place of CIFAR-10's pictures, since no data folder was given. It shows that the "
    "experiment runs; figures are not comparable."
)
FULL = Scale({"train": 50000, "dense": 12500, "test": 5000}, {"max_epochs": 16})
QUICK = Scale({"train": 1500, "dense": 1000, "test": 500}, {"max_epochs": 6})


@dataclass(frozen=True)
class Narrow:
    """A classifier whose network two cores can train on all of CIFAR-10."""

    task: ClassVar[Task] = "labels"

    def __call__(self, **arguments: Any) -> Classifier:
        torch.manual_seed(arguments["seed"])
        network = small_cnn(3, len(CLASSES), widths=(16, 16, 32, 32))
        return Classifier(
            network=network, learning_rate=RECIPES["cnn"].learning_rate, augment=False, **arguments
        )  # fmt: skip


def cifar10_task(
    *, keep: Keep, seed: int, train: int = 50000, dense: int = 12500, test: int = 5000, folder: Path | None = None
) -> TaskData:
    """Pictures of 16×16 pixels with the answers of four simulated raters, right in 45 % of all.

    Parameters
    ----------
    keep : how many of the four label each picture to learn from
    train, dense : pictures to learn from, where one rater labels each, and where all do
    folder : with the files ``cifar10n_train.npz`` and ``cifar10_test_h.npz``; None = digits as a stand-in
    """
    seen, _, unseen = _pictures(dense if keep == "all" else train, test, seed, folder)
    return simulated_task(
        seen, unseen, cifar10_group(seed), CLASSES, keep=keep, seed=seed, about=_about(seen, unseen),
    )  # fmt: skip


def cifar10n_task(*, seed: int, train: int = 10000, test: int = 5000, folder: Path | None = None) -> TaskData:
    """Pictures of 16×16 pixels with three answers each by unknown people; every slot is taken for a rater."""
    seen, answers, unseen = _pictures(train, test, seed, folder)
    images, truth = seen
    return TaskData(
        train=Annotations.from_answers(
            answers, images=images, classes=CLASSES, truth=truth, raters=["slot_1", "slot_2", "slot_3"]
        ),
        held_out=unlabelled(unseen, CLASSES),
        confusion=np.stack([confusion_matrix(truth, answers[:, slot], len(CLASSES)) for slot in range(3)]),
        about=_about(seen, unseen),
    )


def cifar10_true_task(
    *, share: float, seed: int, train: int = 50000, test: int = 10000, folder: Path | None = None
) -> TaskData:
    """Pictures of full size, 32×32 pixels, with their true classes: what a network can learn where nobody errs.

    Parameters
    ----------
    share : of the pictures, to learn from
    """
    (images, truth), _, unseen = _pictures(round(share * train), test, seed, folder, full_size=True)
    return TaskData(
        train=Annotations.from_answers(truth[:, None], images=images, classes=CLASSES, truth=truth, raters=["truth"]),
        held_out=unlabelled(unseen, CLASSES),
        confusion=np.eye(len(CLASSES))[None],
        about=_about((images, truth), unseen),
    )


def _about(seen: Pictures, unseen: Pictures) -> str:
    size = "×".join(map(str, seen[0].shape[2:]))
    return (
        f"{len(seen[1]):,} pictures to learn from, {len(unseen[1]):,} held out, at {size} pixels; others for each seed"
    )


def _pictures(
    train: int, test: int, seed: int, folder: Path | None, full_size: bool = False
) -> tuple[Pictures, np.ndarray, Pictures]:
    """Pictures to learn from, three answers to each, and other pictures; at half their size, unless at full."""
    if folder is None:
        train = min(train, 4000)
        images, _, digits = noisy_digits(train + min(test, 1000), seed=seed)
        images = np.repeat(images if full_size else halve(images), 3, axis=1)
        answers = simulate_labels(digits[:train], np.stack([hammer_spammer(10, 0.8)] * 3), seed=seed).answers
        assert answers is not None
        return (images[:train], digits[:train]), answers, (images[train:], digits[train:])
    choice = np.random.default_rng(seed)
    learnt, scored = (
        read_arrays(folder, file, ("jpeg_bytes", "jpeg_offsets", "labels", *more), SOURCE)
        for file, more in ((TRAIN, ("annot",)), (TEST, ()))
    )
    chosen, other = (choice.permutation(len(part["labels"]))[:n] for part, n in ((learnt, train), (scored, test)))
    seen, unseen = _decoded(learnt, chosen, full_size), _decoded(scored, other, full_size)
    return seen, learnt["annot"][chosen].astype(np.int16), unseen


def _decoded(arrays: dict[str, Any], chosen: np.ndarray, full_size: bool) -> Pictures:
    """Pictures (items, 3, 16, 16), or of 32×32 pixels, between 0 and 1, and their true classes."""
    data, first = arrays["jpeg_bytes"], arrays["jpeg_offsets"]
    pictures = [
        np.asarray(Image.open(io.BytesIO(data[first[item] : first[item + 1]].tobytes())).convert("RGB"))
        for item in chosen
    ]
    images = np.stack(pictures).astype(np.float32).transpose(0, 3, 1, 2) / 255
    return images if full_size else halve(images), arrays["labels"][chosen].astype(np.int16)
