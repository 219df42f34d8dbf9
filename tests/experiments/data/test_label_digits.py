"""Digits labelled by simulated raters."""

from __future__ import annotations

import numpy as np

from annotruth.experiments.data import label_digits

FLIPPERS = {"kind": "pairwise-flipper", "skill": 0.7}


def test_digits_of_a_folder(tmp_path):
    grey = np.random.default_rng(0).integers(0, 255, (30, 28, 28), dtype=np.uint8)
    digits = (np.arange(30) % 10).astype(np.uint8)
    np.savez(tmp_path / "mnist.npz", x_train=grey, y_train=digits, x_test=grey[:10], y_test=digits[:10])
    task = label_digits.label_digits_task(**FLIPPERS, keep=1, seed=0, train=20, test=5, folder=tmp_path)
    first, digit = task.held_out.images[0, 0], task.held_out.truth[0]
    np.testing.assert_allclose(first, grey[digit].reshape(14, 2, 14, 2).mean(axis=(1, 3)) / 255, rtol=1e-5)
