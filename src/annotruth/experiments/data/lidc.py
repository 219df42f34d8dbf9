"""Lung nodules drawn by two to four radiologists each (LIDC-IDRI): real disagreement, and no independent truth."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.experiments.core.task import Scale, TaskData
from annotruth.experiments.data.preparation import read_arrays, split_groups
from annotruth.experiments.data.stand_in import shapes
from annotruth.metrics import confusion_matrix
from annotruth.simulate import simulate_masks
from annotruth.validation import MISSING_PIXEL

FULL = Scale({"train": 300, "test": 150}, {"max_epochs": 16, "batch_size": 4})
QUICK = Scale({"train": 120, "test": 40}, {"max_epochs": 5})
READERS = ("reader_1", "reader_2", "reader_3", "reader_4")
SOURCE = (
    "They are crops of CT slices (slices, 64, 64), the readers' masks (slices, 4, 64, 64) with 255 for a reader who is "
    "not there, and names that begin with the patient, as pid_0035_nod_0_slice_0; made from LIDC-IDRI (The Cancer "
    "Imaging Archive, CC BY 3.0)."
)
NOTES = (
    "A reader here is a slot, the first to the fourth drawing of a nodule, and not a person: the collection does not "
    "say who drew what. Matrices per reader describe the slots, between which little can differ.",
    "The reference is the readers' consensus: foreground where at least half of those who read the nodule drew it, "
    "ties included. There is no independent truth, and what votes is close to the reference by its making.",
    "CM RMSE is of the slots' matrices against that consensus, GED of 16 samples per slice against the readers' masks.",
)
STAND_IN = (
    "No folder was named: drawn shapes with four simulated readers in random slots stand in for LIDC-IDRI. The paper's "
    "figures do not concern them."
)


def lidc_task(
    *, keep: int | Literal["all"], seed: int, train: int = 600, test: int = 200, folder: Path | None = None
) -> TaskData:
    """Slices of some patients to learn from, of others to score on; the seed decides who is where.

    Parameters
    ----------
    keep : "all" readers there are, or how many of them, drawn at random for each slice
    train, test : how many slices at most
    folder : with a file ``lidc_crops_64.npz``; None = a stand-in
    """
    rng = np.random.default_rng([seed, 64])
    images, masks, patients = _stand_in(train + test, rng) if folder is None else _crops(folder)
    truth = consensus(masks)
    cases = Annotations.from_masks(
        masks, images=images[:, None], raters=READERS, classes=("background", "nodule"), truth=truth, groups=patients
    )
    seen, held_out = split_groups(cases, 0.75, (train, test), seed, rng)
    if keep != "all":
        seen = _thinned(seen, keep, rng)
    who = "slices of LIDC-IDRI" if folder is not None else "drawn shapes"
    return TaskData(
        train=seen,
        held_out=held_out,
        confusion=confusion_matrix(held_out.truth[:, None], held_out.masks, 2, batch_axes=2),
        about=f"at most {train} {who} to learn from and {test} of other patients held out, others for each seed",
    )


def consensus(masks: np.ndarray) -> np.ndarray:
    """Foreground where at least half of the readers who are there drew it: (items, *spatial) uint8.

    Examples
    --------
    >>> consensus(np.array([[[[0, 1, 1]], [[0, 0, 1]], [[255, 255, 255]]]], dtype=np.uint8))[0]
    array([[0, 1, 1]], dtype=uint8)
    """
    there = (masks != MISSING_PIXEL).sum(axis=1)
    return (2 * (masks == 1).sum(axis=1) >= np.maximum(there, 1)).astype(np.uint8)


def _crops(folder: Path) -> tuple[np.ndarray, np.ndarray, list[str]]:
    arrays = read_arrays(folder, "lidc_crops_64.npz", ("images", "raters", "name"), SOURCE)
    return (
        arrays["images"].astype(np.float32),
        arrays["raters"],
        [str(name)[: len("pid_0000")] for name in arrays["name"]],
    )


def _stand_in(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Shapes by four readers in random slots, of whom two to four are there; five slices per patient."""
    images, truth = shapes(n, (64, 64), seed=int(rng.integers(2**31)))
    drawn = simulate_masks(
        (truth > 0).astype(np.uint8), ("good", "over", "under", "wrong"), strength=0.75, seed=int(rng.integers(2**31))
    )
    masks = np.stack([item[rng.permutation(4)] for item in np.asarray(drawn.masks)])
    for item, readers in zip(masks, rng.integers(2, 5, size=n)):
        item[readers:] = MISSING_PIXEL
    return images[:, 0], masks, [f"patient {index // 5}" for index in range(n)]


def _thinned(cases: Annotations, keep: int, rng: np.random.Generator) -> Annotations:
    """Keep the masks of some readers, drawn at random among those who are there."""
    masks = cases.masks.copy()
    for item, there in zip(masks, cases.labelled()):
        item[rng.permutation(np.flatnonzero(there))[keep:]] = MISSING_PIXEL
    return Annotations.from_masks(
        masks, images=cases.images, raters=cases.raters, classes=cases.classes, items=cases.items, truth=cases.truth,
        groups=cases.groups,
    )  # fmt: skip
