"""Kidneys in CT slices, drawn by three raters (QUBIQ 2020): few, large, and in Hounsfield units."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.experiments.core.task import Scale, TaskData
from annotruth.experiments.data.preparation import halve, read_arrays
from annotruth.experiments.data.stand_in import shapes
from annotruth.simulate import simulate_masks

FULL = Scale({"train": 16}, {"max_epochs": 40, "batch_size": 2})
QUICK = Scale({"train": 16}, {"max_epochs": 2, "batch_size": 4})
NOTES = (
    "One of the paper's own data sets. It learns from these 20 cases, at 256×256 pixels, and scores on four others, "
    "arbitrated by an expert. Here 16 of the 20 are learnt from, and four, others for each seed, are left out; "
    "pictures have a quarter of their height and width, 124×124 pixels, and the reference is what two of "
    "three raters drew.",
)
STAND_IN = "No folder was named: drawn shapes with three simulated raters stand in for the kidneys."
CLASSES, RATERS = ("background", "kidney"), ("rater_1", "rater_2", "rater_3")
SOURCE = (
    "They are CT slices (20, 497, 497) in Hounsfield units and the masks of three raters (20, 3, 497, 497), of the "
    "QUBIQ challenge 2020."
)


def kidney_task(*, seed: int, train: int = 16, small: bool = False, folder: Path | None = None) -> TaskData:
    """Slices of some cases to learn from; the others are scored against what two of three raters drew.

    Parameters
    ----------
    train : how many of the twenty cases are learnt from
    small : whether pictures have a quarter of their height and width
    folder : with a file ``qubiq_kidney.npz``; None = a stand-in
    """
    if folder is None:
        images, parts = shapes(20, (48, 48), seed=seed)
        images, masks = images[:, 0], np.asarray(simulate_masks((parts > 0).astype(np.uint8), 3 * ("good",)).masks)
    else:
        arrays = read_arrays(folder, "qubiq_kidney.npz", ("images", "raters"), SOURCE)
        images, masks = arrays["images"].astype(np.float32), arrays["raters"]
        if small:
            images = halve(halve(images[:, :496, :496]))
            masks = masks[..., :496:4, :496:4]
    truth = (masks.sum(axis=1) >= 2).astype(np.uint8)
    order = np.random.default_rng([seed, 3]).permutation(len(images))
    seen, held_out = (
        Annotations.from_masks(
            masks[some], images=images[some, None], raters=RATERS, classes=CLASSES, truth=truth[some]
        )
        for some in (order[:train], order[train:])
    )
    return TaskData(seen, held_out, about=f"{len(seen)} slices to learn from, {len(held_out)} held out")
