"""Zhang et al. 2020 on medical pictures: real readers, several classes, low rank, volumes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from annotruth.experiments.core.columns import CM_RMSE, DICE, DICE_OF_PRESENT, GED, MEGABYTES
from annotruth.experiments.core.experiment import Experiment, Row
from annotruth.experiments.core.findings import above_on_every_seed, above_others, close_to, lower_than
from annotruth.experiments.core.task import Scale, TaskData
from annotruth.experiments.data import digits, hippocampus, lidc
from annotruth.experiments.data.digits import SETTINGS
from annotruth.experiments.tables.zhang2020 import (
    BOUNDS,
    COMPARISONS,
    FEW_WEIGHTS,
    ORACLE_NOTE,
    WITHOUT_TRACE,
    sweep,
)

DENSE, ONE_LABEL = ({name: SETTINGS[name]} for name in ("dense", "one-label"))
ONE_LABEL_ROWS = (
    Row("majority"),
    Row("global-cm"),
    Row("pixel-cm", {"warmup": "trace"}, name="pixel-cm as published"),
    Row("pixel-cm"),
    Row("clean"),
)
QUICK_SWEEP = Scale({"train": 60, "test": 30}, {"max_epochs": 3})

LIDC_PAPER = {
    "dense": {
        "mean": {"dice": 0.5672},
        "majority": {"dice": 0.5864},
        "prob-unet": {"dice": 0.6126},
        "staple": {"dice": 0.6934, "cm_rmse": 0.0832},
        "spatial-staple": {"dice": 0.7092, "cm_rmse": 0.0746},
        "global-cm": {"dice": 0.7094, "cm_rmse": 0.1386},
        "pixel-cm, without trace": {"dice": 0.7125, "cm_rmse": 0.0482},
        "pixel-cm": {"dice": 0.7412, "cm_rmse": 0.0451},
    },
    "one-label": {
        "mean": {"dice": 0.4836},
        "majority": {"dice": 0.4836},
        "staple": {"dice": 0.5732, "cm_rmse": 0.1715},
        "spatial-staple": {"dice": 0.6235, "cm_rmse": 0.1419},
        "global-cm": {"dice": 0.6325, "cm_rmse": 0.1382},
        "pixel-cm, without trace": {"dice": 0.6695, "cm_rmse": 0.0921},
        "pixel-cm": {"dice": 0.6812, "cm_rmse": 0.0587},
    },
}
BRATS_PAPER = {
    "dense": {
        "mean": {"dice": 0.2942},
        "majority": {"dice": 0.3412},
        "prob-unet": {"dice": 0.4053},
        "staple": {"dice": 0.4673, "cm_rmse": 0.2147},
        "spatial-staple": {"dice": 0.4731, "cm_rmse": 0.1871},
        "global-cm": {"dice": 0.4733, "cm_rmse": 0.1673},
        "pixel-cm, without trace": {"dice": 0.4903, "cm_rmse": 0.1569},
        "pixel-cm": {"dice": 0.5347, "cm_rmse": 0.1185},
        "oracle-cm": {"dice": 0.6713, "cm_rmse": 0.0843},
    },
    "one-label": {
        "mean": {"dice": 0.3612},
        "majority": {"dice": 0.3612},
        "staple": {"dice": 0.3874, "cm_rmse": 0.2956},
        "spatial-staple": {"dice": 0.4159, "cm_rmse": 0.2543},
        "global-cm": {"dice": 0.4176, "cm_rmse": 0.2419},
        "pixel-cm, without trace": {"dice": 0.4374, "cm_rmse": 0.1825},
        "pixel-cm": {"dice": 0.4621, "cm_rmse": 0.1576},
    },
}

Paper = dict[str, dict[str, dict[str, float]]]


def _of_rows(paper: Paper, rows: Sequence[Row]) -> Paper:
    """The paper's figures of these rows."""
    labels = [row.label for row in rows]
    return {setting: {name: figures[name] for name in labels if name in figures} for setting, figures in paper.items()}


LIDC = Experiment(
    name="zhang2020-lidc",
    title="Zhang et al. 2020, tables 3 to 5: lung nodules drawn by two to four readers",
    task=lidc.lidc_task,
    settings=DENSE,
    rows=(*(row for row in COMPARISONS if row.method != "separate"), WITHOUT_TRACE, Row("pixel-cm")),
    metrics=(DICE, CM_RMSE, GED),
    full=lidc.FULL,
    quick=lidc.QUICK,
    paper=LIDC_PAPER,
    findings=(above_others("pixel-cm"), lower_than("pixel-cm", "prob-unet", "ged")),
    notes=(*lidc.NOTES, "The paper has 5,000 slices of 180×180 pixels; its consensus is made by Spatial STAPLE."),
    stand_in=lidc.STAND_IN,
)

MULTICLASS = Experiment(
    name="zhang2020-multiclass",
    title="Zhang et al. 2020, tables 4 and 5: several classes, hippocampi in place of brain tumours",
    task=hippocampus.slices_task,
    settings=DENSE,
    rows=(*COMPARISONS, WITHOUT_TRACE, Row("pixel-cm"), *BOUNDS),
    metrics=(DICE, CM_RMSE, GED),
    full=hippocampus.FULL,
    quick=hippocampus.QUICK,
    paper=BRATS_PAPER,
    findings=(
        above_others("pixel-cm"),
        close_to("pixel-cm", "clean", {"dense": 0.01}),
        close_to("pixel-cm", "staple", {"dense": 0.003}),
        lower_than("pixel-cm", "prob-unet", "ged"),
    ),
    notes=(
        hippocampus.NOTE,
        "The paper's figures are of BraTS, another task: they are shown for the order of methods.",
        ORACLE_NOTE,
    ),
    stand_in=hippocampus.STAND_IN,
)

LIDC_ONE_LABEL = replace(
    LIDC,
    name="zhang2020-lidc-one-label",
    title="Zhang et al. 2020, tables 4 and 5: lung nodules, one reader each",
    settings=ONE_LABEL,
    rows=ONE_LABEL_ROWS[:-1],
    metrics=(DICE, CM_RMSE),
    paper=_of_rows(LIDC_PAPER, ONE_LABEL_ROWS),
    findings=(above_others("pixel-cm"), above_on_every_seed("pixel-cm", "majority")),
)
MULTICLASS_ONE_LABEL = replace(
    MULTICLASS,
    name="zhang2020-multiclass-one-label",
    title="Zhang et al. 2020, tables 4 and 5: several classes, one label each, hippocampi in place of brain tumours",
    settings=ONE_LABEL,
    rows=ONE_LABEL_ROWS,
    metrics=(DICE, CM_RMSE),
    paper=_of_rows(BRATS_PAPER, ONE_LABEL_ROWS),
    findings=(
        above_others("pixel-cm"),
        close_to("pixel-cm", "clean", {"one-label": 0.04}),
        above_on_every_seed("pixel-cm", "majority"),
    ),
    seeds=tuple(range(10)),
)


def low_rank_task(*, classes: int, folder: Path | None = None, **sizes: Any) -> TaskData:
    """Hippocampi with three classes, or digits with eleven."""
    task = hippocampus.slices_task if classes == 3 else digits.digit_classes_task
    return task(keep="all", folder=folder, **sizes)


LOW_RANK = Experiment(
    name="zhang2020-lowrank",
    title="Zhang et al. 2020, table 6: matrices of low rank",
    task=low_rank_task,
    settings={"3 classes": {"classes": 3}, "11 classes": {"classes": 11}},
    rows=(
        Row("pixel-cm", name="full matrices"),
        *(Row("pixel-cm-lowrank", {"rank": rank}, name=f"rank {rank}") for rank in (1, 2, 4)),
    ),
    metrics=(DICE_OF_PRESENT, CM_RMSE, MEGABYTES),
    full=hippocampus.FULL,
    quick=hippocampus.QUICK,
    paper={"3 classes": {"full matrices": {"dice": 0.5347, "cm_rmse": 0.1185}, "rank 1": {"dice": 0.5056}}},
    notes=(
        hippocampus.NOTE,
        "Of each picture only the classes it holds are scored: of eleven, most are in no picture's truth.",
        "MB: by how much the process grew at most while training.",
        "The paper's figures are of BraTS, where the full form took 2.68 GB and rank 1 2.57 GB of a graphics card.",
    ),
    stand_in=hippocampus.STAND_IN,
)

VOLUMES = Experiment(
    name="zhang2020-3d",
    title="Volumes: hippocampi in 3D by four simulated raters",
    task=hippocampus.volumes_task,
    settings=DENSE,
    rows=(Row("majority"), Row("pixel-cm"), Row("clean")),
    metrics=(DICE, CM_RMSE),
    full=hippocampus.FULL_3D,
    quick=hippocampus.QUICK_3D,
    findings=(above_others("pixel-cm"), close_to("pixel-cm", "clean", {"dense": 0.02})),
    notes=(hippocampus.NOTE, "Training is on random patches, prediction by a sliding window over whole volumes."),
    stand_in=hippocampus.STAND_IN,
)

LIDC_LAMBDA = sweep(
    LIDC,
    "zhang2020-lidc-lambda",
    "The weight λ of the trace on lung nodules",
    QUICK_SWEEP,
    {"posterior": FEW_WEIGHTS},
)
MULTICLASS_LAMBDA = sweep(
    MULTICLASS,
    "zhang2020-multiclass-lambda",
    "The weight λ of the trace on hippocampi in two parts",
    QUICK_SWEEP,
    {"posterior": FEW_WEIGHTS},
)
