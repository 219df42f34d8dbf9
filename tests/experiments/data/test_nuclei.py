"""Nuclei: cut into tiles, split by picture."""

import numpy as np

from annotruth.experiments.data import nuclei


def test_nuclei_are_cut_into_tiles_and_split_by_picture(tmp_path):
    rng = np.random.default_rng(0)
    masks = np.zeros((6, 5, 256, 256), dtype=np.uint8)
    masks[:, 1:, 10:20, 140:150] = 255  # in the second of four tiles
    images = rng.integers(0, 255, (6, 256, 256), dtype=np.uint8)
    np.savez(tmp_path / "cfos_wue1_512.npz", images=images, raters=masks, est_gt=masks[:, 1])
    task = nuclei.nuclei_task(seed=0, train=10, test=10, folder=tmp_path)
    assert len(task.train) + len(task.held_out) == 6  # empty tiles are left out
    assert not set(task.train.groups) & set(task.held_out.groups)
    assert task.train.images.shape[1:] == (1, 128, 128)
    assert set(np.unique(task.train.masks)) == {0, 1}
    np.testing.assert_array_equal(task.train.truth, task.train.masks[:, 1])
    picture = int(task.train.groups[0].split()[1])
    whole = images[picture].astype(float)
    expected = (whole[:128, 128:] - whole.mean()) / whole.std()
    np.testing.assert_allclose(task.train.images[0, 0], expected, atol=1e-5)


def test_tiles_without_a_nucleus_in_the_reference_are_learnt_from_and_not_scored(tmp_path):
    masks = np.zeros((6, 5, 128, 256), dtype=np.uint8)
    masks[:, :, 10:20, 10:20] = 255
    masks[:, 0, 10:20, 140:150] = 255  # in the second tile, one expert alone
    images = np.random.default_rng(0).integers(0, 255, (6, 128, 256), dtype=np.uint8)
    np.savez(tmp_path / "cfos_wue1_512.npz", images=images, raters=masks, est_gt=masks[:, 1])
    task = nuclei.nuclei_task(seed=0, train=20, test=20, folder=tmp_path)
    pictures = len(set(task.train.groups)), len(set(task.held_out.groups))
    assert sum(pictures) == 6
    assert (len(task.train), len(task.held_out)) == (2 * pictures[0], pictures[1])


def test_nuclei_have_a_stand_in():
    task = nuclei.nuclei_task(seed=0, train=16, test=8)
    assert task.train.raters == nuclei.EXPERTS
    assert not set(task.train.groups) & set(task.held_out.groups)
