"""Scribbles on hearts, split by patient."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth.errors import ContradictionWarning
from annotruth.experiments.data.coarse_acdc import acdc_task

pytestmark = pytest.mark.filterwarnings(f"ignore::{ContradictionWarning.__module__}.ContradictionWarning")


def test_hearts_are_split_by_patient(tmp_path):
    stand_in = acdc_task(seed=0, train=20, test=10)
    assert not set(stand_in.train.groups) & set(stand_in.held_out.groups)
    labels = np.random.default_rng(0).integers(0, 4, (12, 144, 144), dtype=np.uint8)
    strokes = np.where(np.random.default_rng(1).random(labels.shape) < 0.03, labels, 4).astype(np.uint8)
    names = np.array([f"patient{i // 2:03d}_frame01_slice_{i}" for i in range(12)])
    np.savez(tmp_path / "acdc_scribbles_144.npz", images=labels * 9, labels=labels, scribbles=strokes, name=names)
    task = acdc_task(seed=0, folder=tmp_path)
    assert task.train.masks.shape[1:] == (1, 56, 56)
    assert not set(task.train.groups) & set(task.held_out.groups)
    assert 0.05 < (task.train.masks != 255).mean() < 0.15
