"""CIFAR-10 with people's answers."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from annotruth.experiments.data import cifar10


def test_pictures_of_a_folder_are_decoded_and_keep_their_answers(tmp_path):
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
    task = cifar10.cifar10n_task(seed=0, train=12, test=4, folder=tmp_path)
    assert task.train.images.shape == (12, 3, 16, 16)
    for image, label in zip(task.train.images, task.train.truth):
        assert image.mean() in (
            pytest.approx(20 * label / 255, abs=0.02),
            pytest.approx(20 * (label + 10) / 255, abs=0.02),
        )
    np.testing.assert_array_equal(task.train.answers.label.reshape(-1, 3)[:, 1], (task.train.truth + 1) % 10)
    np.testing.assert_array_equal(task.confusion[0][truth], np.eye(10)[truth])
