"""The data of the experiments with coarse drawings."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth.errors import ContradictionWarning
from annotruth.experiments.data.coarse_acdc import acdc_task
from annotruth.experiments.data.coarse_digits import coarse_digits_task
from annotruth.experiments.data.coarse_vessels import vessels_task

pytestmark = pytest.mark.filterwarnings(f"ignore::{ContradictionWarning.__module__}.ContradictionWarning")


def test_rows_share_digits_whatever_is_drawn_on_them():
    sizes = {"seed": 1, "pool": 30, "train": 20, "test": 10}
    drawn, scribbles = coarse_digits_task(**sizes), coarse_digits_task(**sizes, ratio=0.01)
    boxes, semi = coarse_digits_task(**sizes, boxes=True), coarse_digits_task(**sizes, semi=True)
    for task in (scribbles, boxes, semi):
        np.testing.assert_array_equal(task.held_out.truth, drawn.held_out.truth)
        np.testing.assert_array_equal(task.train.images[:20], drawn.train.images)
    assert (scribbles.train.masks == 1).sum() < 0.1 * (drawn.train.masks == 1).sum()
    assert not boxes.train.has_negatives
    assert len(semi.train) == 30
    assert (semi.train.masks[:20] == 255).all()
    np.testing.assert_array_equal(semi.known[:20], drawn.train.truth)
    assert (semi.known[20:] == 255).all()
    assert (semi.train.masks[20:] == 1).any()


@pytest.mark.parametrize("vary", ["positive", "negative"])
def test_one_kind_varies_by_itself(vary):
    sizes = {"seed": 1, "pool": 20, "train": 20, "test": 5}
    task, whole = coarse_digits_task(**sizes, ratio=0.1, vary=vary), coarse_digits_task(**sizes)

    def marks(task):
        negatives = np.stack([task.train.item_negatives(i) for i in range(20)])
        return {"positive": (task.train.masks == 1).sum(), "negative": (negatives == 1).sum()}

    other = {"positive": "negative", "negative": "positive"}[vary]
    assert marks(task)[vary] < 0.3 * marks(whole)[vary]
    assert marks(task)[other] >= marks(whole)[other]  # fewer contradictions


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
