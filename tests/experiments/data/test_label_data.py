"""The data of experiments on label tables: from a folder, or stand-ins."""

import io

import numpy as np
import pytest
from PIL import Image

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


def test_digits_of_a_folder(tmp_path):
    grey = np.random.default_rng(0).integers(0, 255, (30, 28, 28), dtype=np.uint8)
    digits = (np.arange(30) % 10).astype(np.uint8)
    np.savez(tmp_path / "mnist.npz", x_train=grey, y_train=digits, x_test=grey[:10], y_test=digits[:10])
    task = label_digits.label_digits_task(**FLIPPERS, keep=1, seed=0, train=20, test=5, folder=tmp_path)
    first, digit = task.held_out.images[0, 0], task.held_out.truth[0]
    np.testing.assert_allclose(first, grey[digit].reshape(14, 2, 14, 2).mean(axis=(1, 3)) / 255, rtol=1e-5)


def test_pictures_of_a_folder_are_decoded_and_keep_their_answers(tmp_path):
    files = []
    for item in range(12):
        buffer = io.BytesIO()
        Image.fromarray(np.full((32, 32, 3), 20 * item, dtype=np.uint8)).save(buffer, "jpeg", quality=95)
        files.append(np.frombuffer(buffer.getvalue(), dtype=np.uint8))
    offsets = np.cumsum([0, *map(len, files)])
    truth = np.arange(12) % 10
    answers = np.stack([truth, (truth + 1) % 10, truth], axis=1)
    both = {"jpeg_bytes": np.concatenate(files), "jpeg_offsets": offsets, "labels": truth}
    np.savez(tmp_path / cifar10.TRAIN, **both, annot=answers)
    np.savez(tmp_path / cifar10.TEST, **both)
    task = cifar10.cifar10n_task(seed=0, train=12, test=4, folder=tmp_path)
    assert task.train.images.shape == (12, 3, 16, 16)
    for image, label in zip(task.train.images, task.train.truth):
        assert image.mean() in (
            pytest.approx(20 * label / 255, abs=0.02),
            pytest.approx(20 * (label + 10) / 255, abs=0.02),
        )
    np.testing.assert_array_equal(task.train.answers.label.reshape(-1, 3)[:, 1], (task.train.truth + 1) % 10)
    np.testing.assert_array_equal(task.confusion[0][truth], np.eye(10)[truth])


def test_answers_of_a_folder(tmp_path):
    rng = np.random.default_rng(0)
    answers = rng.integers(-1, 8, (20, 4))
    truth = rng.integers(0, 8, 20)
    features = rng.normal(size=(20, 6)).astype(np.float32)
    np.savez(tmp_path / "labelme_crowd.npz", x_train=features, z_train=truth, answers=answers, x_test=features,
             z_test=truth)  # fmt: skip
    task = labelme.labelme_task(seed=0, train=15, test=20, folder=tmp_path)
    assert len(task.train.answers) == (answers[:15] >= 0).sum()
    assert task.train.classes == labelme.CLASSES


@pytest.mark.parametrize("name", TASKS)
def test_a_folder_without_the_file_or_with_another_is_refused(name, tmp_path):
    with pytest.raises(InputError, match=r"there is no file \w+\.npz.*arrays") as refused:
        TASKS[name](seed=0, folder=tmp_path)
    file = next(word for word in str(refused.value).split() if ".npz" in word).rstrip(".")
    np.savez(tmp_path / file, other=np.zeros(3))
    with pytest.raises(InputError, match="cannot be used"):
        TASKS[name](seed=0, folder=tmp_path)
