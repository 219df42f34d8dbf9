"""A table of which nothing is learnt, so that what is tested is the runner alone."""

import numpy as np
import pytest

from annotruth.experiments.core import runner
from annotruth.experiments.core.columns import CM_RMSE, DICE, SWAPPED
from annotruth.experiments.core.experiment import Experiment, Row
from annotruth.experiments.core.findings import above_others
from annotruth.experiments.core.task import Scale
from annotruth.experiments.data import digits


class Guess:
    """A learner that learns nothing."""

    def __init__(self, method, seed, **options):
        self.method, self.options, self.warnings_ = method, options, ["a guess"]

    def fit(self, annotations):
        self.faithful = np.eye(len(annotations.classes))[None].repeat(len(annotations.raters), axis=0)
        return self

    def predict(self, images):
        return (images[:, 0] > 0.5).astype(np.uint8)

    def confusion(self, images):
        return self.faithful[None].repeat(len(images), axis=0)


@pytest.fixture
def tiny():
    return Experiment(
        name="tiny",
        title="A tiny table",
        task=digits.digits_task,
        settings=digits.SETTINGS,
        rows=(Row("clean"), Row("pixel-cm", {"trace_weight": 0.0}, name="without trace")),
        metrics=(DICE, CM_RMSE, SWAPPED),
        full=Scale({"train": 16, "test": 6}, {"max_epochs": 1}),
        quick=Scale({"train": 12, "test": 4}, {"max_epochs": 1, "batch_size": 8}),
        seeds=(0, 1),
        learner=Guess,
        paper={"dense": {"clean": {"dice": 0.9}}},
        findings=(above_others("without trace"),),
        notes=("Digits are few.",),
    )


@pytest.fixture
def trained(monkeypatch):
    """Every training that is run, by row and seed."""
    seen = []
    run = runner.run_cell
    monkeypatch.setattr(runner, "run_cell", lambda cell: seen.append((cell.row.label, cell.seed)) or run(cell))
    return seen
