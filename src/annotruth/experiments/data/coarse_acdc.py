"""Cardiac MR slices with strokes that somebody drew by hand (ACDC), their middle at half resolution."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.experiments.core.task import Scale, TaskData
from annotruth.experiments.data.preparation import halve, halve_labels, read_arrays, split_groups, standardise
from annotruth.experiments.data.stand_in import shapes
from annotruth.simulate import simulate_drawings
from annotruth.validation import MISSING_PIXEL

FULL = Scale({"train": 600, "test": 100}, {"max_epochs": 24, "batch_size": 4, "validation": 0})
QUICK = Scale({"train": 60, "test": 30}, {"max_epochs": 4, "batch_size": 4, "validation": 0})
SIDE = 112
"""Pixels of the middle of a slice that is shown, along each side; hardly any heart reaches beyond."""
CLASSES = ("background", "right ventricle", "myocardium", "left ventricle")
NOT_DRAWN = 4
SOURCE = (
    "They are slices (slices, 144, 144) of ACDC (Bernard et al. 2018) with true labels, strokes by Valvano et al. 2021 "
    "(0 = background, 1 to 3 = a structure, 4 = not drawn), and names that begin with the patient, as patient001."
)
NOTES = (
    "The strokes are real, of one person; nearly all of them are right. Background strokes say where no structure is.",
    "Shown is the middle of each slice (112 pixels a side), standardised, at half its resolution; strokes are kept "
    "where any of four pixels has one. Test slices are of other patients. By hand 2.8 % of the pixels of whole slices "
    "were marked, which are more of the middle at half resolution. Epochs were chosen with the network of before "
    "2026-11-17, on seeds 0 to 5; nothing has been chosen since.",
    "Trainings shared two cores with others: the seconds say little.",
)
STAND_IN = "No folder was named: drawn shapes with simulated strokes stand in for ACDC."


def acdc_task(*, seed: int, train: int = 600, test: int = 100, folder: Path | None = None) -> TaskData:
    """Slices of some patients to learn from, of others to score on; the seed decides who is where.

    Parameters
    ----------
    train, test : how many slices at most
    folder : with a file ``acdc_scribbles_144.npz``; None = a stand-in
    """
    rng = np.random.default_rng([seed, 144])
    images, strokes, truth, patients = _stand_in(train + test, rng) if folder is None else _slices(folder)
    cases = Annotations.from_masks(
        strokes[:, None], images=images[:, None], classes=CLASSES, truth=truth, groups=patients
    )  # fmt: skip
    seen, held_out = split_groups(cases, 0.7, (train, test), seed, rng)
    what = "slices of ACDC" if folder is not None else "drawn shapes"
    return TaskData(
        train=seen,
        held_out=held_out,
        about=f"{len(seen)} {what} to learn from and {len(held_out)} of other patients held out, others for each seed",
    )


def _slices(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    arrays = read_arrays(folder, "acdc_scribbles_144.npz", ("images", "labels", "scribbles", "name"), SOURCE)
    images, labels, strokes = (_middle(arrays[name]) for name in ("images", "labels", "scribbles"))
    images = standardise(halve(images.astype(np.float32)))
    strokes = np.where(strokes == NOT_DRAWN, MISSING_PIXEL, strokes).astype(np.uint8)
    patients = [str(name)[: len("patient000")] for name in arrays["name"]]
    return images, halve_labels(strokes, MISSING_PIXEL), halve_labels(labels), patients


def _middle(values: np.ndarray) -> np.ndarray:
    """The middle of slices (slices, height, width)."""
    window = (slice((length - SIDE) // 2, (length + SIDE) // 2) for length in values.shape[1:])
    return values[:, *window]


def _stand_in(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    """Bodies in two parts, one of them with a core, with strokes on a tenth of each class and of the background."""
    images, truth = shapes(n, (SIDE // 2, SIDE // 2), seed=int(rng.integers(2**31)))
    truth[:, 25:31, 25:31] = np.where(truth[:, 25:31, 25:31] > 0, 3, 0)
    images[:, 0][truth == 3] += 0.4
    drawn = simulate_drawings(truth + 1, positive=0.1, negative=None, strength=0, seed=int(rng.integers(2**31)))
    strokes = np.asarray(drawn.masks)[:, 0]
    strokes = np.where(strokes == MISSING_PIXEL, strokes, strokes - 1).astype(np.uint8)
    return images[:, 0], strokes, truth, [f"patient {index // 5}" for index in range(n)]
