"""Slices and volumes of the hippocampus."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth.experiments.data import hippocampus
from annotruth.experiments.data.stand_in import shapes


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
