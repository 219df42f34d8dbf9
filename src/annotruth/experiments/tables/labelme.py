"""LabelMe: scenes named by 59 people."""

from __future__ import annotations

from annotruth.experiments.core.columns import ACCURACY, CM_ERROR
from annotruth.experiments.core.experiment import Experiment, Row
from annotruth.experiments.core.findings import above_others, at_least
from annotruth.experiments.core.task import Scale
from annotruth.experiments.data.labelme import STAND_IN, labelme_task
from annotruth.experiments.tables.tanno2019 import ALL_METHODS
from annotruth.training import Classifier

LABELME = Experiment(
    name="labelme",
    title="LabelMe: scenes named by 59 people, two or three answers each",
    task=labelme_task,
    settings={"2.5 answers each": {}},
    rows=tuple(Row(method) for method in (*ALL_METHODS, "oracle-cm", "clean")),
    metrics=(ACCURACY, CM_ERROR),
    full=Scale({"train": 1000, "test": 1188}),
    quick=Scale({"train": 300, "test": 300}, {"max_epochs": 10}),
    seeds=(0, 1, 2, 3, 4),
    learner=Classifier,
    findings=(
        above_others("global-cm", metric="accuracy"),
        at_least("global-cm", "accuracy", {"2.5 answers each": 0.86}),
    ),
    notes=(
        "The raters are real people. The true matrices are their answers counted against the true classes, row by row "
        "where they met the class; some gave as few as three answers, so that nobody can find their matrices exactly.",
        "Every method runs with its defaults and the default network, one hidden layer of 128 with dropout.",
        "oracle-cm knows these matrices, and clean the truth.",
        "Learning rate and number of steps are those that held-out noisy answers prefer. While global-cm was developed,"
        " some of its figures on the held-out pictures were seen, so that they may flatter it a little.",
    ),
    stand_in=STAND_IN,
)  # fmt: skip
