"""What all data of experiments on label tables must do: stand-ins, seeds, perfect models, files that are not there."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth.errors import InputError
from annotruth.experiments.core.columns import ACCURACY, CM_ERROR, MARGIN, SKILL, WARNED
from annotruth.experiments.core.task import Trained
from annotruth.experiments.data import cifar10, label_digits, labelme
from annotruth.metrics import dominance_margin

FLIPPERS = {"kind": "pairwise-flipper", "skill": 0.7}


class Copycat:
    """Predicts the truth itself, and knows the raters."""

    def __init__(self, task):
        self.task, self.warnings_ = task, []

    def predict_proba(self, held_out):
        return np.eye(len(held_out.classes))[held_out.truth]

    @property
    def confusion_(self):
        return np.nan_to_num(self.task.confusion)


TASKS = {
    "digits": lambda **sizes: label_digits.label_digits_task(**FLIPPERS, keep=1, **sizes),
    "cifar10": lambda **sizes: cifar10.cifar10_task(keep=1, **sizes),
    "cifar10n": cifar10.cifar10n_task,
    "cifar10 with true classes": lambda **sizes: cifar10.cifar10_true_task(share=1.0, **sizes),
    "labelme": labelme.labelme_task,
}


@pytest.mark.parametrize("name", TASKS)
def test_every_task_runs_without_a_folder_and_perfect_models_score_perfectly(name):
    made = TASKS[name](seed=3, train=40, test=10)
    assert len(made.train) == 40
    assert len(made.held_out) == 10
    trained = Trained(Copycat(made), made, 0, 1.0, None)
    assert ACCURACY.score(trained) == 1
    assert CM_ERROR.score(trained) == 0
    assert WARNED.score(trained) == 0
    again, other = TASKS[name](seed=3, train=40, test=10), TASKS[name](seed=4, train=40, test=10)
    np.testing.assert_array_equal(again.train.answers.label, made.train.answers.label)
    np.testing.assert_array_equal(again.held_out.images, made.held_out.images)
    assert (other.held_out.images != made.held_out.images).any()


def test_raters_of_digits_have_the_skill_asked_for_and_label_as_many_as_asked_for():
    one = label_digits.label_digits_task(**FLIPPERS, keep=1, seed=0, train=30, dense=20, test=5)
    every = label_digits.label_digits_task(**FLIPPERS, keep="all", seed=0, train=30, dense=20, test=5)
    assert (len(one.train), len(one.train.answers)) == (30, 30)
    assert (len(every.train), len(every.train.answers)) == (20, 100)
    assert SKILL.score(Trained(Copycat(one), one, 0, 1.0, None)) == pytest.approx(0.7, abs=0.02)
    assert one.train.images.shape == (30, 1, 14, 14)


def test_dominance_is_that_of_the_true_matrices():
    task = TASKS["digits"](seed=0, train=5, test=5)
    assert MARGIN.score(Trained(Copycat(task), task, 0, 1.0, None)) == dominance_margin(task.confusion)


@pytest.mark.parametrize("name", TASKS)
def test_a_folder_without_the_file_or_with_another_is_refused(name, tmp_path):
    with pytest.raises(InputError, match=r"there is no file \w+\.npz.*arrays") as refused:
        TASKS[name](seed=0, folder=tmp_path)
    file = next(word for word in str(refused.value).split() if ".npz" in word).rstrip(".")
    np.savez(tmp_path / file, other=np.zeros(3))
    with pytest.raises(InputError, match="cannot be used"):
        TASKS[name](seed=0, folder=tmp_path)
