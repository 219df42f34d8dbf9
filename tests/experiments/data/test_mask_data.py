"""What all data of experiments on masks must do: stand-ins, seeds, perfect models, files that are not there."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth.errors import InputError
from annotruth.experiments.core.columns import CM_RMSE, DICE_OF_PRESENT, GED, RATER_DICE
from annotruth.experiments.core.task import Trained
from annotruth.experiments.data import digits, hippocampus, lidc


class Copycat:
    """Predicts the truth itself, and samples the raters' own masks."""

    def __init__(self, task):
        self.task = task

    def predict(self, images):
        return self.task.held_out.truth

    def confusion(self, images):
        return np.nan_to_num(self.task.confusion)

    def sample(self, images, n, seed=0):
        return self.task.held_out.masks.swapaxes(0, 1)


@pytest.mark.parametrize(
    "task",
    [lidc.lidc_task, hippocampus.slices_task, hippocampus.volumes_task, digits.digits_task, digits.digit_classes_task],
)
def test_every_task_runs_without_a_folder_and_perfect_models_score_perfectly(task):
    made = task(keep="all", seed=3, train=12, test=4)
    assert len(made.train) <= 12
    assert 1 <= len(made.held_out) <= 4
    trained = Trained(Copycat(made), made, 0, 1.0, None)
    assert DICE_OF_PRESENT.score(trained) == 1
    assert CM_RMSE.score(trained) == 0
    assert GED.score(trained) == pytest.approx(0)
    assert 0 < RATER_DICE.score(trained) < 1
    again = task(keep="all", seed=3, train=12, test=4)
    np.testing.assert_array_equal(again.train.masks, made.train.masks)
    np.testing.assert_array_equal(again.held_out.images, made.held_out.images)


@pytest.mark.parametrize("task", [lidc.lidc_task, hippocampus.slices_task, digits.digits_task])
def test_a_folder_without_the_file_or_with_another_is_refused(task, tmp_path):
    with pytest.raises(InputError, match=r"there is no file \w+\.npz.*arrays") as refused:
        task(keep="all", seed=0, folder=tmp_path)
    file = next(word for word in str(refused.value).split() if ".npz" in word).rstrip(".")
    np.savez(tmp_path / file, other=np.zeros(3))
    with pytest.raises(InputError, match="cannot be used"):
        task(keep="all", seed=0, folder=tmp_path)
