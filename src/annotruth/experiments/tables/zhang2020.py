"""Zhang et al. 2020, segmentation with pixel-wise confusion matrices: tables and figures on MNIST."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from annotruth.experiments.core.columns import CM_RMSE, DICE, GED, RATER_DICE, SWAPPED
from annotruth.experiments.core.experiment import Curves, Experiment, Row
from annotruth.experiments.core.findings import above_others, at_most, close_to, lower_than, near_best, never_swapped
from annotruth.experiments.core.task import Scale
from annotruth.experiments.data.digits import FULL, NOTE, QUICK, QUICK_SWEEP, SETTINGS, SWEEP, digits_task

WITHOUT_TRACE = Row("pixel-cm", {"trace_weight": 0.0}, name="pixel-cm, without trace")
SHARED_FEATURES = Row("pixel-cm", {"features": "shared"}, name="pixel-cm, shared features")
PLAIN_TRACE = Row("pixel-cm", {"trace": "plain"}, name="pixel-cm, plain trace")
COMPARISONS = tuple(
    Row(method) for method in ("mean", "majority", "separate", "prob-unet", "staple", "spatial-staple", "global-cm")
)
BOUNDS = (Row("oracle-cm"), Row("clean"))
PAPER_NOTE = (
    "The paper's figures are of all 60,000 digits, of other raters' masks and another network: compare the order of "
    "methods, not the digits. Its mode is our majority."
)
ORACLE_NOTE = (
    "oracle-cm is told how often each rater errs on each picture, not where; what learns where can be above it."
)
GED_NOTE = (
    "GED compares 16 samples per digit with the five raters' own masks, 0 is best; the paper's (its table 3: prob-unet "
    "1.46, pixel-cm 1.24) most likely adds what must be subtracted, and is left out."
)
WEIGHTS = (0.001, 0.01, 0.1, 0.4, 0.7, 0.9)
FEW_WEIGHTS = (0.01, 0.1, 0.4)
STRENGTHS = (0.5, 0.75, 1.0, 1.25)

PAPER = {
    "dense": {
        "mean": {"dice": 0.3836},
        "majority": {"dice": 0.6289},
        "prob-unet": {"dice": 0.6512},
        "separate": {"dice": 0.7044},
        "staple": {"dice": 0.7803, "cm_rmse": 0.1241},
        "spatial-staple": {"dice": 0.7896, "cm_rmse": 0.1195},
        "global-cm": {"dice": 0.7921, "cm_rmse": 0.1132},
        "pixel-cm, without trace": {"dice": 0.7963, "cm_rmse": 0.1125},
        "pixel-cm": {"dice": 0.8292, "cm_rmse": 0.0893},
        "oracle-cm": {"dice": 0.8329, "cm_rmse": 0.0238},
    },
    "one-label": {
        "mean": {"dice": 0.3279},
        "majority": {"dice": 0.3279},
        "staple": {"dice": 0.5407, "cm_rmse": 0.2617},
        "spatial-staple": {"dice": 0.5673, "cm_rmse": 0.2384},
        "global-cm": {"dice": 0.5901, "cm_rmse": 0.1953},
        "pixel-cm, without trace": {"dice": 0.7448, "cm_rmse": 0.1538},
        "pixel-cm": {"dice": 0.7648, "cm_rmse": 0.1329},
    },
}


def _mnist(name: str, title: str, setting: str) -> Experiment:
    return Experiment(
        name=name,
        title=title,
        task=digits_task,
        settings={setting: SETTINGS[setting]},
        rows=(*COMPARISONS, WITHOUT_TRACE, PLAIN_TRACE, SHARED_FEATURES, Row("pixel-cm"), *BOUNDS),
        metrics=(DICE, CM_RMSE, GED),
        full=FULL,
        quick=QUICK,
        paper=PAPER,
        findings=(
            above_others("pixel-cm"),
            close_to("pixel-cm", "clean", {"dense": 0.003, "one-label": 0.007}),
            at_most("pixel-cm", "cm_rmse", {"dense": 0.035, "one-label": 0.035}),
            lower_than("pixel-cm", "prob-unet", "ged"),
        ),
        notes=(NOTE, PAPER_NOTE, ORACLE_NOTE, GED_NOTE),
    )


MNIST = _mnist("zhang2020-mnist", "Zhang et al. 2020, table 1: digits, every rater labels every digit", "dense")
ONE_LABEL = _mnist("zhang2020-mnist-one-label", "Zhang et al. 2020, table 2: digits, one label each", "one-label")

SEEDS = Experiment(
    name="zhang2020-mnist-seeds",
    title="Digits over twenty seeds: is a class ever swapped?",
    task=digits_task,
    settings=SETTINGS,
    rows=(Row("pixel-cm"),),
    metrics=(DICE, CM_RMSE, SWAPPED),
    full=SWEEP,
    quick=QUICK_SWEEP,
    seeds=tuple(range(20)),
    findings=(never_swapped("pixel-cm"),),
    notes=(NOTE, "Swapped: a foreground Dice below 0.3.", "Half the digits of the tables, where it happens sooner."),
)


def sweep(
    experiment: Experiment,
    name: str,
    title: str,
    quick: Scale,
    weights: Mapping[str, Sequence[float]],
) -> Experiment:
    """Figure 3 on the data of an experiment: the weight of the trace by hand, beside the untouched default.

    ``weights`` are those tried of each kind of trace.
    """
    lines = {trace: f"{trace} trace" for trace in weights}
    by_hand = [
        Row("pixel-cm", {"trace_weight": weight, "trace": trace}, name=f"{line}, λ {weight:g}", lines=(line,))
        for trace, line in lines.items()
        for weight in weights[trace]
    ]
    without = Row("pixel-cm", {"trace_weight": 0.0}, name="λ 0", lines=tuple(lines.values()))
    return replace(
        experiment,
        name=name,
        title=title,
        rows=(Row("pixel-cm", name="default"), without, *by_hand),
        metrics=(DICE, CM_RMSE),
        quick=quick,
        paper={},
        findings=(near_best("default", 0.005),),
        notes=(*experiment.notes, "The default is pixel-cm as it is, with no weight given."),
        curves=Curves("trace_weight", "weight λ of the trace"),
    )


LAMBDA = sweep(
    replace(MNIST, settings=SETTINGS, full=SWEEP, notes=(NOTE,)),
    "zhang2020-mnist-lambda",
    "Zhang et al. 2020, figure 3: the weight λ of the trace",
    QUICK_SWEEP,
    {"posterior": WEIGHTS, "plain": FEW_WEIGHTS},
)

NOISE = Experiment(
    name="zhang2020-mnist-noise",
    title="Zhang et al. 2020, figure 4: how strongly the raters err",
    task=digits_task,
    settings={f"dense, strength {strength:g}": {**SETTINGS["dense"], "strength": strength} for strength in STRENGTHS},
    rows=(
        Row("pixel-cm"),
        *(Row(method) for method in ("global-cm", "spatial-staple", "majority", "clean")),
    ),
    metrics=(DICE, CM_RMSE, RATER_DICE),
    full=SWEEP,
    quick=QUICK_SWEEP,
    findings=(above_others("pixel-cm"),),
    notes=(
        NOTE,
        "A rater leaves a mask blank with the strength as probability, always from 1 on. Below 1 it is chance which "
        "mask is blank, and no method can foretell a picture's matrix: CM RMSE, picture by picture, is larger there.",
    ),
    curves=Curves("rater_dice", "mean Dice of the raters' own masks"),
)
