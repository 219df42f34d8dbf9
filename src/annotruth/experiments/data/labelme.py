"""LabelMe: 1,000 pictures of eight kinds of scenes as features, answered by 59 people (Rodrigues and Pereira 2018)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.experiments.core.task import TaskData
from annotruth.experiments.data.label_tasks import Pictures, unlabelled
from annotruth.experiments.data.preparation import read_arrays
from annotruth.metrics import confusion_matrix
from annotruth.simulate import hammer_spammer, simulate_labels

CLASSES = ("highway", "inside city", "tall building", "street", "forest", "coast", "mountain", "open country")
SOURCE = (
    "They are VGG16's features of LabelMe pictures with answers from Mechanical Turk, by Rodrigues and Pereira: "
    "x_train (items, features), z_train true classes, answers (items, raters) with -1 = not asked, x_test, z_test."
)
NAMES = ("x_train", "z_train", "answers", "x_test", "z_test")
STAND_IN = (
    "A stand-in: drawn features and simulated raters, since no data folder was given. It shows that the "
    "experiment runs, and says nothing of people."
)


def labelme_task(*, seed: int, train: int = 1000, test: int = 1188, folder: Path | None = None) -> TaskData:
    """Features with the answers of the people who were asked; the same for every seed, but for the stand-in.

    Parameters
    ----------
    folder : with a file ``labelme_crowd.npz``; None = a stand-in
    """
    seen, answers, unseen = _stand_in(train, test, seed) if folder is None else _real(train, test, folder)
    features, truth = seen
    raters = answers.shape[1]
    return TaskData(
        train=Annotations.from_answers(answers, images=features, classes=CLASSES, truth=truth),
        held_out=unlabelled(unseen, CLASSES),
        confusion=np.stack([confusion_matrix(truth, answers[:, r], len(CLASSES)) for r in range(raters)]),
        about=f"{len(truth):,} pictures to learn from as {features.shape[1]} features, {raters} raters with "
        f"{(answers >= 0).sum() / len(truth):.1f} answers a picture, {len(unseen[1]):,} held out",
    )


def _real(train: int, test: int, folder: Path) -> tuple[Pictures, np.ndarray, Pictures]:
    arrays = read_arrays(folder, "labelme_crowd.npz", NAMES, SOURCE)
    seen = arrays["x_train"][:train], arrays["z_train"][:train].astype(np.int16)
    unseen = arrays["x_test"][:test], arrays["z_test"][:test].astype(np.int16)
    return seen, arrays["answers"][:train].astype(np.int16), unseen


def _stand_in(train: int, test: int, seed: int) -> tuple[Pictures, np.ndarray, Pictures]:
    """Clouds of 64 features around a centre for each class, and twenty raters of different skill."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, len(CLASSES), train + test).astype(np.int16)
    features = rng.normal(size=(len(CLASSES), 64))[truth] + 2.5 * rng.normal(size=(train + test, 64))
    features = features.astype(np.float32)
    raters = [hammer_spammer(len(CLASSES), skill) for skill in rng.uniform(0.3, 0.9, size=20)]
    answers = simulate_labels(truth[:train], raters, keep=3, seed=seed).answers
    assert answers is not None
    return (features[:train], truth[:train]), answers, (features[train:], truth[train:])
