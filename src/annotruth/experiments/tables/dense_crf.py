"""What a dense CRF after prediction is worth: on rounded bodies, and on strokes of a few pixels' width."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from annotruth.experiments.core.columns import DICE, HD95_PIXELS, Column, column
from annotruth.experiments.core.experiment import Experiment, Row, Table
from annotruth.experiments.core.findings import Finding, away, by_setting
from annotruth.experiments.core.task import Scale, TaskData, Trained
from annotruth.experiments.data.digits import digits_task
from annotruth.experiments.data.stand_in import shapes
from annotruth.metrics import dice, hd95
from annotruth.simulate import simulate_masks

BODIES, DIGITS = "bodies", "digits"


def crf_task(*, kind: str, seed: int, train: int = 60, test: int = 60, folder: Path | None = None) -> TaskData:
    """Bodies of 64×64 pixels under noise, or digits, by the usual five raters; others for each seed.

    Parameters
    ----------
    kind : "bodies" or "digits"
    folder : with a file ``mnist.npz``; None = the bundled digits
    """
    if kind == DIGITS:
        return digits_task(keep="all", seed=seed, train=train, test=test, folder=folder)
    images, parts = shapes(train + test, (64, 64), seed=seed)
    truth = (parts > 0).astype(np.uint8)
    seen, held_out = (simulate_masks(part, seed=at) for part, at in ((truth[:train], seed), (truth[train:], seed + 1)))
    classes = ("background", "body")
    return TaskData(
        train=seen.annotations(images=images[:train], classes=classes),
        held_out=held_out.annotations(images=images[train:], classes=classes),
        about=f"{train} drawn bodies to learn from, {test} held out",
    )


def _refined(trained: Trained) -> np.ndarray:
    return trained.model.predict(trained.task.held_out.images, crf=True)


def _dice_after(trained: Trained) -> float:
    return dice(_refined(trained), trained.task.held_out.truth)


def _hd95_after(trained: Trained) -> float:
    return hd95(_refined(trained), trained.task.held_out.truth)


DICE_AFTER = column("dice", name="dice_crf", title="Dice after a CRF", score=_dice_after)
HD95_AFTER: Column = column("hd95", name="hd95_crf", title="HD95 after a CRF (pixels)", score=_hd95_after)


def changes_dice() -> Finding:
    """By how much does the CRF change Dice of each method?"""

    def find(table: Table) -> list[str]:
        return [
            f"{setting}: after a dense CRF, Dice of {name} is {away(row['dice_crf']['mean'] - row['dice']['mean'])} "
            "what it was."
            for setting, rows in by_setting(table).items()
            for name, row in rows.items()
        ]

    return find


DENSE_CRF = Experiment(
    name="dense-crf",
    title="A dense CRF after prediction",
    task=crf_task,
    settings={BODIES: {"kind": BODIES}, DIGITS: {"kind": DIGITS}},
    rows=(Row("mean"), Row("majority"), Row("pixel-cm"), Row("clean")),
    metrics=(DICE, DICE_AFTER, HD95_PIXELS, HD95_AFTER),
    full=Scale({"train": 60, "test": 60}, {"max_epochs": 8}),
    quick=Scale({"train": 20, "test": 10}, {"max_epochs": 3}),
    findings=(changes_dice(),),
    notes=(
        "The CRF has all weights as by default, which were chosen while scores of seeds 10 and 11 were seen; it sees "
        "the image and the network's probabilities, and nothing is trained for it.",
        "Strokes of digits are two to four pixels wide and mostly border: there, listening to neighbours thins them.",
    ),
)
