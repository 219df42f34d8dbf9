"""The data sets of the two large tables, each in its own folder of the folder that the user names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from annotruth.experiments.core.task import TaskData
from annotruth.experiments.data import cifar10, digits, hippocampus, kidney, label_digits, labelme, lidc, nuclei
from annotruth.experiments.data.baselines import DataSet, named_task

CLASSIFICATION = {
    "LabelMe": DataSet("labelme_crowd", labelme.labelme_task),
    "CIFAR-10N": DataSet("cifar10", cifar10.cifar10n_task),
    "CIFAR-10, four raters each": DataSet("cifar10", cifar10.cifar10_task, {"keep": "all"}),
    "CIFAR-10, one label each": DataSet("cifar10", cifar10.cifar10_task, {"keep": 1}),
    "digits, raters who guess": DataSet(
        "mnist", label_digits.label_digits_task, {"kind": "hammer-spammer", "skill": 0.4, "keep": 1}
    ),
}
SEGMENTATION = {
    "digits": DataSet("mnist", digits.digits_task, {"keep": "all"}),
    "LIDC": DataSet("lidc_crops", lidc.lidc_task, {"keep": "all"}),
    "cFOS": DataSet("cfos_experts", nuclei.nuclei_task),
    "hippocampus": DataSet("hippocampus_msd", hippocampus.slices_task, {"keep": "all"}),
    "QUBIQ kidney": DataSet("qubiq_kidney", kidney.kidney_task, {"small": True}),
}
STAND_IN = (
    "No folder was named: bundled digits, and drawn shapes or features with simulated raters, stand in for the data."
)


def classification_task(*, of: str, seed: int, folder: Path | None = None, **sizes: Any) -> TaskData:
    """A data set of :data:`CLASSIFICATION` by its name; sizes are arguments of its own task."""
    return named_task(CLASSIFICATION, of, seed, folder, sizes)


def segmentation_task(*, of: str, seed: int, folder: Path | None = None, **sizes: Any) -> TaskData:
    """A data set of :data:`SEGMENTATION` by its name; sizes are arguments of its own task."""
    return named_task(SEGMENTATION, of, seed, folder, sizes)
