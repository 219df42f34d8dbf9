"""Vessels of the eye: tiles to learn from, photographs to score on."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth.errors import ContradictionWarning
from annotruth.experiments.data.coarse_vessels import vessels_task

pytestmark = pytest.mark.filterwarnings(f"ignore::{ContradictionWarning.__module__}.ContradictionWarning")


def test_vessels_are_tiles_of_some_eyes_and_photographs_of_others(tmp_path):
    rng = np.random.default_rng(0)
    images, raters = rng.integers(0, 255, (20, 584, 565, 3), np.uint8), np.zeros((20, 2, 584, 565), np.uint8)
    raters[:, :, ::20] = raters[:, :, 1::20] = raters[:, :, 2::20] = raters[:, :, 3::20] = 1
    np.savez(tmp_path / "drive_test.npz", images=images, raters=raters)
    task = vessels_task(seed=0, ratio=0.3, folder=tmp_path)
    assert task.train.images.shape == (8 * 16, 3, 70, 70)
    assert task.held_out.images.shape == (12, 3, 280, 280)
    stand_in = vessels_task(seed=0, ratio=0.3, train=2)
    assert 0.01 < stand_in.train.truth.mean() < 0.2
