"""Digits of a folder, as masks."""

from __future__ import annotations

import numpy as np

from annotruth.experiments.data import digits


def test_digits_of_a_folder(tmp_path):
    grey = np.random.default_rng(0).integers(0, 2, (30, 28, 28), dtype=np.uint8) * 200
    np.savez(tmp_path / "mnist.npz", x_train=grey, x_test=grey[:10])
    task = digits.digits_task(keep="all", seed=0, train=20, test=5, folder=tmp_path)
    assert task.train.images.shape == (20, 1, 28, 28)
    assert set(np.unique(task.held_out.truth)) == {0, 1}
    assert 0 <= task.train.images.min() <= task.train.images.max() <= 1
