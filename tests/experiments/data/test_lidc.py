"""Nodules: split by patient, some readers missing."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth.experiments.data import lidc
from annotruth.experiments.data.stand_in import shapes
from annotruth.validation import MISSING_PIXEL


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
