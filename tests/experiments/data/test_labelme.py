"""LabelMe: features, and answers of a crowd."""

from __future__ import annotations

import numpy as np

from annotruth.experiments.data import labelme


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
