"""All methods on all data of several raters: one table for classification, one for segmentation, with average ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from annotruth.experiments.core.columns import ACCURACY, CM_ERROR, CM_RMSE, DICE, GED, PARAMETERS, SOFT_DICE
from annotruth.experiments.core.experiment import Experiment, Row
from annotruth.experiments.core.ranks import ranked_first
from annotruth.experiments.core.task import Scale
from annotruth.experiments.data import multi_rater
from annotruth.experiments.data.cifar10 import Narrow
from annotruth.methods import METHODS, Task
from annotruth.methods.registry import methods_for
from annotruth.training import Classifier

BOUNDS = ("clean", "oracle-cm")
NARROW = {"network": "narrow", "max_epochs": 8}


@dataclass(frozen=True)
class ClassifierWith:
    """A classifier whose network may also be ``narrow``, that of the tables on CIFAR-10."""

    task: ClassVar[Task] = "labels"

    def __call__(self, *, network: str | None = None, **arguments: Any) -> Classifier:
        return Narrow()(**arguments) if network == "narrow" else Classifier(network=network, **arguments)


def rows_of(task: Task) -> tuple[Row, ...]:
    """Every method in the registry, but for those that learn from strokes, of which masks have none.

    Examples
    --------
    >>> [row.method for row in rows_of("masks") if row.method in ("pixel-cm", "scribble-sup")]
    ['pixel-cm']
    """
    return tuple(Row(name) for name in methods_for(task) if ".strokes." not in METHODS[name, task].__module__)


def _note(minutes: str) -> str:
    return (
        "Every method is in the table that the registry has, with its defaults, the same network and the same number "
        "of epochs; these are few, and data small, so that all trainings together take "
        f"about {minutes} core-minutes. Seconds of each training stand in the last columns."
    )


RANKS = (
    "Ranks are of means over seeds, 1 = best, ties shared, averaged over data sets; clean and oracle-cm know more than "
    "the raters' labels and are not ranked. A method that needs what data lack is left out there, with the reason."
)

CLASSIFICATION = Experiment(
    name="multi-rater-classification",
    title="All methods of classification on five data sets of several raters",
    task=multi_rater.classification_task,
    settings={name: {"of": name} for name in multi_rater.CLASSIFICATION},
    rows=rows_of("labels"),
    metrics=(ACCURACY, CM_ERROR, PARAMETERS),
    full=Scale(
        settings={
            "LabelMe": Scale({"train": 1000, "test": 1188}),
            "CIFAR-10N": Scale({"train": 3000, "test": 2000}, NARROW),
            "CIFAR-10, four raters each": Scale({"dense": 3000, "test": 2000}, NARROW),
            "CIFAR-10, one label each": Scale({"train": 6000, "test": 2000}, NARROW),
            "digits, raters who guess": Scale(
                {"train": 3000, "test": 1000}, {"network": "cnn", "augment": False, "max_epochs": 8}
            ),
        }
    ),
    quick=Scale(
        {"test": 300},
        {"max_epochs": 4},
        {
            "LabelMe": Scale({"train": 300}),
            "CIFAR-10N": Scale({"train": 500}, {"network": "narrow"}),
            "CIFAR-10, four raters each": Scale({"dense": 500}, {"network": "narrow"}),
            "CIFAR-10, one label each": Scale({"train": 800}, {"network": "narrow"}),
            "digits, raters who guess": Scale({"train": 500}, {"network": "cnn", "augment": False}),
        },
    ),
    learner=ClassifierWith(),
    findings=(ranked_first("global-cm"),),
    notes=(_note("50"), RANKS),
    stand_in=multi_rater.STAND_IN,
    ranked=("accuracy", "cm_error"),
    bounds=BOUNDS,
    skips=True,
)

SEGMENTATION = Experiment(
    name="multi-rater-segmentation",
    title="All methods of segmentation on five data sets of several raters",
    task=multi_rater.segmentation_task,
    settings={name: {"of": name} for name in multi_rater.SEGMENTATION},
    rows=rows_of("masks"),
    metrics=(DICE, SOFT_DICE, GED, CM_RMSE, PARAMETERS),
    full=Scale(
        settings={
            "digits": Scale({"train": 200, "test": 100}, {"max_epochs": 12}),
            "LIDC": Scale({"train": 100, "test": 60}, {"max_epochs": 12, "batch_size": 4}),
            "cFOS": Scale({"train": 48, "test": 24}, {"max_epochs": 16, "batch_size": 2}),
            "hippocampus": Scale({"train": 100, "test": 60}, {"max_epochs": 12, "batch_size": 4}),
            "QUBIQ kidney": Scale({"train": 14}, {"max_epochs": 40, "batch_size": 2}),
        }
    ),
    quick=Scale(
        {},
        {"max_epochs": 2, "batch_size": 4},
        {
            "digits": Scale({"train": 40, "test": 12}),
            "LIDC": Scale({"train": 12, "test": 6}),
            "cFOS": Scale({"train": 6, "test": 3}, {"max_epochs": 1}),
            "hippocampus": Scale({"train": 12, "test": 6}),
            "QUBIQ kidney": Scale({"train": 16}, {"max_epochs": 1}),
        },
    ),
    findings=(ranked_first("pixel-cm", "global-cm", "mrprism"),),
    notes=(
        _note("450"),
        RANKS,
        "Methods for coarse drawings (box-sup, coarse-cm, scribble-sup and their kin) need strokes, which masks are "
        "not, and are left out. On LIDC and kidneys the reference is the raters' majority, on cFOS STAPLE.",
        "Why agnet is first, which learns the vote as majority does: its coarse stages give class scores, too, which "
        "are learnt sooner. Trainings are short here; in those of default length such stages gain nothing "
        "(baselines-truth).",
        "Why pixel-cm is not among the first three: half of its training goes by before it chooses whom to believe. On "
        "14 kidneys that leaves 140 steps, and nothing can be nearer to the reference than what learns the vote, which "
        "the reference is. Why mrprism is not: it learns late, on kidneys and hippocampi above all; with 16 slices it "
        "reaches 0.92 of kidneys (mrprism-qubiq-kidney).",
    ),
    stand_in=multi_rater.STAND_IN,
    ranked=("dice", "soft_dice", "ged", "cm_rmse"),
    bounds=BOUNDS,
    skips=True,
)
