"""Data sets on which plain networks are judged: each with the figure that a well-kept network reaches in the field."""

from __future__ import annotations

from pathlib import Path

from annotruth.errors import InputError
from annotruth.experiments.core.task import TaskData
from annotruth.experiments.data import coarse_acdc, hippocampus, lidc
from annotruth.validation import one_of

FOLDERS = {"lidc": "lidc_crops", "hippocampus": "hippocampus_msd", "acdc": "acdc_scribbles"}
"""Where each data set lies in the folder that the user names."""
NOTES = (
    "lidc: nodules in CT, the truth is the readers' consensus; hippocampus: slices of MR volumes in two parts; acdc: "
    "three structures of the heart in MR slices, their middle at half resolution.",
)
STAND_IN = "No folder was named: drawn shapes stand in for the pictures."


def baseline_task(*, of: str, seed: int, train: int = 300, test: int = 150, folder: Path | None = None) -> TaskData:
    """A data set by its name, with its truth to learn from.

    Parameters
    ----------
    of : "lidc", "hippocampus" or "acdc"
    folder : holds a folder for each data set, see :data:`FOLDERS`; None = stand-ins
    """
    one_of(of, tuple(FOLDERS), "data set")
    if folder is not None:
        folder = folder / FOLDERS[of]
        if not folder.is_dir():
            raise InputError(f"{folder}: there is no such folder; the data set {of} must lie there.")
    if of == "acdc":
        return coarse_acdc.acdc_task(seed=seed, train=train, test=test, folder=folder)
    task = lidc.lidc_task if of == "lidc" else hippocampus.slices_task
    return task(keep="all", seed=seed, train=train, test=test, folder=folder)
