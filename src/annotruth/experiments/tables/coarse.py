"""Learning from coarse positive and negative drawings: the tables and figures of the coarse-label paper."""

from __future__ import annotations

from annotruth.experiments.core.columns import DICE, MARKED, MIOU
from annotruth.experiments.core.experiment import Curves, Experiment, Row
from annotruth.experiments.core.findings import above_others, close_to, leads, rises
from annotruth.experiments.data import coarse_acdc, coarse_digits, coarse_vessels

RATIOS = (0.01, 0.3, 0.5, 0.8)
"""Shares of the area that are kept of drawings, beside all of it."""
SCRIBBLES = {"ratio": 0.01}
POSITIVE_ONLY = {"negatives": False}
HALF = {"unmarked": "background", "negatives": False}
"""Without negative drawings only what is not drawn can tell where the background is."""
SEMI = "coarse-cm, with masks"
PAPER_NOTE = (
    "The paper's figures are of other drawings and another network: compare the order of methods, not the numbers. "
    "What a comparison learns from is in its name here; where nothing is said, both kinds of drawings."
)
SMALL_FORMS = (
    "scribble-sup, cycle-mix, coarse-sup, lc-mil, box-sup and l2g are the ideas of those papers in a small form."
)

MNIST = Experiment(
    name="coarse-mnist",
    title="Coarse drawings on digits: tables 1 to 3 of the coarse-label paper",
    task=coarse_digits.coarse_digits_task,
    settings={"digits": {}},
    rows=(
        Row("grab-cut"),
        Row("lazy-snapping"),
        Row("coarse-cm", HALF, name="coarse-cm, without negatives", data=POSITIVE_ONLY),
        Row("scribble-sup", name="scribble-sup, scribbles", data=SCRIBBLES),
        Row("cycle-mix", name="cycle-mix, scribbles", data=SCRIBBLES),
        Row("coarse-cm", name="coarse-cm, scribbles", data=SCRIBBLES),
        Row("coarse-sup", name="coarse-sup, positive", data=POSITIVE_ONLY),
        Row("lc-mil", name="lc-mil, positive", data=POSITIVE_ONLY),
        Row("box-sup", name="box-sup, boxes", data={"boxes": True}),
        Row("l2g", name="l2g, boxes", data={"boxes": True}),
        Row("partial-ce"),
        Row("scribble-sup"),
        Row("coarse-cm"),
        Row("clean"),
        Row("coarse-cm", name=SEMI, data={"semi": True}),
    ),
    metrics=(MIOU, MARKED),
    full=coarse_digits.FULL,
    quick=coarse_digits.QUICK,
    paper={
        "digits": {
            "grab-cut": {"miou": 0.752},
            "lazy-snapping": {"miou": 0.785},
            "coarse-cm, without negatives": {"miou": 0.772},
            "scribble-sup, scribbles": {"miou": 0.734},
            "cycle-mix, scribbles": {"miou": 0.752},
            "coarse-cm, scribbles": {"miou": 0.753},
            "coarse-sup, positive": {"miou": 0.766},
            "lc-mil, positive": {"miou": 0.768},
            "box-sup, boxes": {"miou": 0.785},
            "l2g, boxes": {"miou": 0.792},
            "coarse-cm": {"miou": 0.825},
            "clean": {"miou": 0.862},
            SEMI: {"miou": 0.887},
        }
    },
    findings=(
        close_to("coarse-cm", "clean", {"digits": 0.025}, metric="miou"),
        above_others("coarse-cm", besides=("clean", SEMI), metric="miou"),
        leads("coarse-cm", "coarse-cm, without negatives", 0.02, "miou"),
        leads(SEMI, "clean", 0.0, "miou"),
    ),
    notes=(
        coarse_digits.NOTE,
        "300 digits are drawn on, or have true masks for clean; with masks: those 300 masks, and drawings on 150 "
        "others, the paper's proportion. On these digits 30 masks already do nearly as well as 300, so that there is "
        "little to gain; with drawings on 1,000 others, which was tried first on the same seeds, it was 0.23 points "
        "below clean.",
        PAPER_NOTE,
        SMALL_FORMS,
    ),
)

BOTH, POSITIVE, NEGATIVE, PLAIN = "both vary", "positive varies", "negative varies", "partial-ce, both vary"


def _sweep(method: str, line: str, vary: str) -> tuple[Row, ...]:
    return tuple(
        Row(method, name=f"{line}, {ratio:g}", lines=(line,), data={"ratio": ratio, "vary": vary}) for ratio in RATIOS
    )


RATIO = Experiment(
    name="coarse-mnist-ratios",
    title="Coarse drawings on digits: figures 3 and 4 of the coarse-label paper, how much is drawn",
    task=coarse_digits.coarse_digits_task,
    settings={"digits": {}},
    rows=(
        *_sweep("coarse-cm", BOTH, "both"),
        *_sweep("coarse-cm", POSITIVE, "positive"),
        *_sweep("coarse-cm", NEGATIVE, "negative"),
        Row("coarse-cm", name="all is drawn", lines=(BOTH, POSITIVE, NEGATIVE), data={"ratio": 1.0}),
        *_sweep("partial-ce", PLAIN, "both"),
        Row("partial-ce", name=f"{PLAIN}, 1", lines=(PLAIN,), data={"ratio": 1.0}),
        Row("clean"),
    ),
    metrics=(MIOU, MARKED),
    full=coarse_digits.SWEEP,
    quick=coarse_digits.QUICK_SWEEP,
    findings=tuple(rises(line, "ratio", "miou") for line in (BOTH, POSITIVE, NEGATIVE)),
    notes=(coarse_digits.NOTE, "The lines are of coarse-cm, where no other method is named."),
    curves=Curves("ratio", "share of the drawings' area that is kept", ("miou",)),
)

ACDC = Experiment(
    name="coarse-acdc",
    title="Real strokes: three structures of the heart in MR slices",
    task=coarse_acdc.acdc_task,
    settings={"strokes": {}},
    rows=(
        Row("partial-ce"),
        Row("scribble-sup", {"regulariser": "entropy"}, name="scribble-sup, entropy"),
        Row("scribble-sup"),
        Row("cycle-mix"),
        Row("lazy-snapping"),
        Row("coarse-cm"),
        Row("clean"),
    ),
    metrics=(DICE, MIOU, MARKED),
    full=coarse_acdc.FULL,
    quick=coarse_acdc.QUICK,
    findings=(
        close_to("coarse-cm", "clean", {"strokes": 0.04}),
        leads("coarse-cm", "partial-ce", 0.0, "dice"),
        above_others("coarse-cm", besides=("clean",)),
    ),
    notes=coarse_acdc.NOTES,
    stand_in=coarse_acdc.STAND_IN,
)

LEVELS = (0.01, 0.1, 0.3, 0.6, 1.0)
"""From scribbles to nearly the whole of it, the paper's five levels."""

VESSELS = Experiment(
    name="coarse-vessels",
    title="Vessels of the retina with drawings at five levels",
    task=coarse_vessels.vessels_task,
    settings={"vessels": {}},
    rows=(
        *(
            Row(method, options, name=f"{method}, level {level}", lines=(method,), data={"ratio": ratio})
            for method, options in (("coarse-cm", {"smoothness": 0.0}), ("partial-ce", {}))
            for level, ratio in enumerate(LEVELS, 1)
        ),
        Row("clean"),
    ),
    metrics=(MIOU, DICE, MARKED),
    full=coarse_vessels.FULL,
    quick=coarse_vessels.QUICK,
    findings=(rises("coarse-cm", "ratio", "miou"),),
    notes=coarse_vessels.NOTES,
    curves=Curves("ratio", "share of the drawings' area that is kept", ("miou", "dice")),
    stand_in=coarse_vessels.STAND_IN,
)
