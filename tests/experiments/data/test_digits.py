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


def test_the_diagnosis_of_a_digit_is_which_one_it_is(tmp_path):
    """Pictures of one grey value each, which tells the digit."""
    which = np.arange(30) % 10
    grey = np.broadcast_to((which * 20 + 10).astype(np.uint8)[:, None, None], (30, 28, 28))
    np.savez(tmp_path / "mnist.npz", x_train=grey, y_train=which, x_test=grey[:10], y_test=which[:10])
    task = digits.seven_raters_task(seed=0, train=20, test=5, folder=tmp_path)
    images = np.clip(task.train.images.mean(axis=(1, 2, 3)), 0, 1)
    seen = [int(name) for name in task.options["diag"]["diagnosis"].values()]
    assert np.corrcoef(seen, images)[0, 1] > 0.98
