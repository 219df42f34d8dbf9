"""Data sets on which plain networks are judged, each beside what networks of the field reach on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from annotruth.data.annotations import Annotations
from annotruth.errors import InputError
from annotruth.experiments.core.task import TaskData
from annotruth.experiments.data import coarse_acdc, hippocampus, kidney, lidc, nuclei
from annotruth.experiments.data.coarse_vessels import CLASSES as VESSEL_CLASSES
from annotruth.experiments.data.coarse_vessels import SOURCE as DRIVE_SOURCE
from annotruth.experiments.data.preparation import read_arrays
from annotruth.experiments.data.stand_in import shapes
from annotruth.validation import one_of

STAND_IN = "No folder was named: drawn shapes stand in for the pictures."


def photographs_task(*, seed: int, train: int = 14, folder: Path | None = None) -> TaskData:
    """Whole photographs of the retina (DRIVE) at full size: some eyes to learn from, the others to score on.

    Parameters
    ----------
    folder : with a file ``drive_test.npz``; None = a stand-in
    """
    if folder is None:
        images, parts = shapes(20, (64, 64), seed=seed)
        truth = (parts > 0).astype(np.uint8)
    else:
        arrays = read_arrays(folder, "drive_test.npz", ("images", "raters"), DRIVE_SOURCE)
        images, truth = np.moveaxis(arrays["images"].astype(np.float32), -1, 1), arrays["raters"][:, 0]
    order = np.random.default_rng([seed, 20]).permutation(len(images))
    seen, held_out = (
        Annotations.from_masks(truth[some, None], images=images[some], classes=VESSEL_CLASSES, truth=truth[some])
        for some in (order[:train], order[train:])
    )
    return TaskData(seen, held_out, about=f"{len(seen)} photographs to learn from, {len(held_out)} held out")


@dataclass(frozen=True)
class DataSet:
    """A data set in the folder that the user names: its own folder there, its task, and arguments of that."""

    folder: str
    task: Callable[..., TaskData]
    arguments: Mapping[str, Any] = field(default_factory=dict)


ALL = {"keep": "all"}
DATA_SETS = {
    "lidc": DataSet("lidc_crops", lidc.lidc_task, {**ALL, "train": 700, "test": 150}),
    "lidc, 300 slices": DataSet("lidc_crops", lidc.lidc_task, {**ALL, "train": 300, "test": 150}),
    "hippocampus": DataSet("hippocampus_msd", hippocampus.slices_task, {**ALL, "train": 300, "test": 150}),
    "hippocampus volumes": DataSet("hippocampus_msd", hippocampus.volumes_task, {**ALL, "train": 40, "test": 39}),
    "acdc": DataSet("acdc_scribbles", coarse_acdc.acdc_task, {"train": 600, "test": 150}),
    "drive": DataSet("drive", photographs_task, {"train": 14}),
    "cfos": DataSet("cfos_experts", nuclei.nuclei_task, {"train": 96, "test": 48}),
    "kidney": DataSet("qubiq_kidney", kidney.kidney_task, {"train": 16}),
}


def baseline_task(*, of: str, seed: int, folder: Path | None = None, **sizes: int) -> TaskData:
    """A data set by its name.

    Parameters
    ----------
    of : one of :data:`DATA_SETS`
    folder : holds a folder for each data set; None = stand-ins
    sizes : ``train`` and ``test``, if others than usual
    """
    return named_task(DATA_SETS, of, seed, folder, sizes)


def named_task(
    data_sets: Mapping[str, DataSet], of: str, seed: int, folder: Path | None, sizes: Mapping[str, Any]
) -> TaskData:
    """One of several data sets, from its own folder in the folder that holds all."""
    data = data_sets[one_of(of, tuple(data_sets), "data set")]
    if folder is not None:
        folder = folder / data.folder
        if not folder.is_dir():
            raise InputError(f"{folder}: there is no such folder; the data set {of} must lie there.")
    return data.task(**{**data.arguments, **sizes}, seed=seed, folder=folder)
