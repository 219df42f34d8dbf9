"""CIFAR-10 with people's answers."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from annotruth.experiments.data import cifar10


@pytest.fixture
def folder(tmp_path):
    """Twelve grey pictures, each brighter than the one before, with three answers each."""
    files = []
    for item in range(12):
        buffer = io.BytesIO()
        Image.fromarray(np.full((32, 32, 3), 20 * item, dtype=np.uint8)).save(buffer, "jpeg", quality=95)
        files.append(np.frombuffer(buffer.getvalue(), dtype=np.uint8))
    offsets = np.cumsum([0, *map(len, files)])
    truth = np.arange(12) % 10
    answers = np.stack([truth, (truth + 1) % 10, truth], axis=1)
    both = {"jpeg_bytes": np.concatenate(files), "jpeg_offsets": offsets, "labels": truth}
    np.savez(tmp_path / cifar10.TRAIN, **both, annot=answers)
    np.savez(tmp_path / cifar10.TEST, **both)
    return tmp_path


def test_pictures_of_a_folder_are_decoded_and_keep_their_answers(folder):
    task = cifar10.cifar10n_task(seed=0, train=12, test=4, folder=folder)
    truth = np.arange(10)
    assert task.train.images.shape == (12, 3, 16, 16)
    for image, label in zip(task.train.images, task.train.truth):
        assert image.mean() in (
            pytest.approx(20 * label / 255, abs=0.02),
            pytest.approx(20 * (label + 10) / 255, abs=0.02),
        )
    np.testing.assert_array_equal(task.train.answers.label.reshape(-1, 3)[:, 1], (task.train.truth + 1) % 10)
    np.testing.assert_array_equal(task.confusion[0][truth], np.eye(10)[truth])


def test_pictures_with_their_true_classes_have_full_size(folder):
    half, full = (cifar10.cifar10_true_task(share=share, seed=0, train=12, test=4, folder=folder) for share in (0.5, 1))
    assert half.train.images.shape == (6, 3, 32, 32)
    assert full.train.images.shape == (12, 3, 32, 32)
    assert full.held_out.images.shape == (4, 3, 32, 32)
    np.testing.assert_array_equal(full.train.answers.label, full.train.truth)
    for image, label in zip(full.train.images, full.train.truth):
        assert round(image.mean() * 255 / 20) % 10 == label
