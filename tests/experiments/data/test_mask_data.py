"""The data of experiments: from a folder, or stand-ins; nobody on both sides of a split."""

import numpy as np
import pytest

from annotruth.errors import InputError
from annotruth.experiments.core.columns import CM_RMSE, DICE_OF_PRESENT, GED, RATER_DICE
from annotruth.experiments.core.task import Trained
from annotruth.experiments.data import digits, hippocampus, lidc
from annotruth.experiments.data.stand_in import shapes
from annotruth.validation import MISSING_PIXEL


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


@pytest.fixture
def crops(tmp_path):
    """Twelve patients with four slices each, as the collection names them."""
    rng = np.random.default_rng(0)
    _, truth = shapes(48, (16, 16))
    masks = np.repeat((truth > 0).astype(np.uint8)[:, None], 4, axis=1)
    masks[::2, 2:] = MISSING_PIXEL
    masks[1::2, 0] = 0
    names = [f"pid_{index // 4:04d}_nod_0_slice_{index % 4}" for index in range(48)]
    images = rng.standard_normal((48, 16, 16)).astype(np.float16)
    np.savez(tmp_path / "lidc_crops_64.npz", images=images, raters=masks, name=names)
    return tmp_path


def test_nodules_are_split_by_patient_and_keep_missing_readers(crops):
    task = lidc.lidc_task(keep="all", seed=0, train=20, test=8, folder=crops)
    assert len(task.train) == 20
    assert len(task.held_out) == 8
    assert not set(task.train.groups) & set(task.held_out.groups)
    assert set(task.train.labelled().sum(axis=1)) == {2, 4}
    other = lidc.lidc_task(keep="all", seed=1, train=20, test=8, folder=crops)
    assert set(other.held_out.groups) != set(task.held_out.groups)


def test_one_label_keeps_one_of_the_readers_who_are_there(crops):
    task = lidc.lidc_task(keep=1, seed=0, train=30, test=8, folder=crops)
    assert set(task.train.labelled().sum(axis=1)) == {1}
    assert (task.train.truth == lidc.lidc_task(keep="all", seed=0, train=30, test=8, folder=crops).train.truth).all()
    assert set(task.held_out.labelled().sum(axis=1)) == {2, 4}


def test_consensus_is_at_least_half_of_the_readers_who_are_there():
    missing = np.full(4, MISSING_PIXEL)
    masks = np.array(
        [[[0, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1], missing], [[0, 1, 1, 0], [0, 0, 1, 0], missing, missing]]
    )
    np.testing.assert_array_equal(lidc.consensus(masks[:, :, None])[:, 0], [[0, 0, 1, 1], [0, 1, 1, 0]])


@pytest.fixture
def volumes(tmp_path):
    images, truth = shapes(12, (8, 24, 20))
    images = (255 * images[:, 0].clip(0, 1)).astype(np.uint8)
    images[:, 0, 0, 0] = range(12)  # tells which volume a picture is of
    np.savez(tmp_path / "hippocampus_msd_48x64x48.npz", images=images, labels=truth)
    return tmp_path


def test_slices_show_both_parts_and_volumes_are_not_torn_apart(volumes, monkeypatch):
    monkeypatch.setattr(hippocampus, "MIN_PART_PIXELS", 2)
    task = hippocampus.slices_task(keep="all", seed=0, train=20, test=6, folder=volumes)
    assert task.train.images.shape == (20, 1, 24, 20)
    for truth in task.train.truth:
        assert min((truth == 1).sum(), (truth == 2).sum()) >= 2
    assert task.train.raters == hippocampus.RATERS
    whole = hippocampus.volumes_task(keep=1, seed=0, train=6, test=3, folder=volumes)
    assert whole.held_out.images.shape == (3, 1, 8, 24, 20)
    assert set(whole.train.labelled().sum(axis=1)) == {1}
    marks = [{float(image[0, 0, 0, 0]) for image in part.images} for part in (whole.train, whole.held_out)]
    assert not marks[0] & marks[1]


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


def test_digits_of_a_folder(tmp_path):
    grey = np.random.default_rng(0).integers(0, 2, (30, 28, 28), dtype=np.uint8) * 200
    np.savez(tmp_path / "mnist.npz", x_train=grey, x_test=grey[:10])
    task = digits.digits_task(keep="all", seed=0, train=20, test=5, folder=tmp_path)
    assert task.train.images.shape == (20, 1, 28, 28)
    assert set(np.unique(task.held_out.truth)) == {0, 1}
    assert 0 <= task.train.images.min() <= task.train.images.max() <= 1


@pytest.mark.parametrize("task", [lidc.lidc_task, hippocampus.slices_task, digits.digits_task])
def test_a_folder_without_the_file_or_with_another_is_refused(task, tmp_path):
    with pytest.raises(InputError, match=r"there is no file \w+\.npz.*arrays") as refused:
        task(keep="all", seed=0, folder=tmp_path)
    file = next(word for word in str(refused.value).split() if ".npz" in word).rstrip(".")
    np.savez(tmp_path / file, other=np.zeros(3))
    with pytest.raises(InputError, match="cannot be used"):
        task(keep="all", seed=0, folder=tmp_path)
