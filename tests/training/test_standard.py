"""Values of images, standardised by channel, after they are clipped."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from annotruth import Annotations
from annotruth.errors import InputError
from annotruth.training import datasets as data
from annotruth.training.datasets import MaskDataset


def test_standard_against_numpy(make_cases):
    annotations = make_cases(5, [(4, 5), (7, 3), (6, 6), (2, 9), (5, 5)], channels=3)
    images = [annotations.item_image(i) for i in range(5)]
    pixels = np.concatenate([image.reshape(3, -1) for image in images], axis=1).astype(np.float64)
    standard = MaskDataset(annotations).measure()
    np.testing.assert_allclose(standard.mean, pixels.mean(axis=1), rtol=1e-6)
    np.testing.assert_allclose(standard.deviation, pixels.std(axis=1), rtol=1e-6)
    expected = (images[0] - pixels.mean(axis=1)[:, None, None]) / pixels.std(axis=1)[:, None, None]
    np.testing.assert_allclose(standard(images[0]), expected, atol=1e-5)
    assert standard(images[0]).dtype == torch.float32


def test_a_constant_channel_becomes_zero():
    annotations = Annotations.from_masks(np.zeros((2, 3, 4, 4), np.uint8), images=np.full((2, 1, 4, 4), 7.0))
    standard = MaskDataset(annotations).measure()
    assert standard.deviation == [1.0]
    assert (standard(annotations.item_image(0)) == 0).all()


def test_values_are_clipped_before_they_are_standardised(make_cases, monkeypatch):
    annotations, clip = make_cases(5, (6, 7), channels=2), ((-0.1, 0.4), (0.0, 1.0))
    pixels = np.concatenate([annotations.item_image(i).reshape(2, -1) for i in range(5)], axis=1).astype(np.float64)
    clipped = np.stack([channel.clip(*bounds) for channel, bounds in zip(pixels, clip)])
    cases = MaskDataset(annotations)
    standard = cases.measure(clip)
    np.testing.assert_allclose(standard.mean, clipped.mean(axis=1), rtol=1e-6)
    np.testing.assert_allclose(standard.deviation, clipped.std(axis=1), rtol=1e-6)
    images, *_ = cases.standardise(standard).__getitems__(list(range(5)))
    np.testing.assert_allclose(images.mean(dim=(0, 2, 3)), 0, atol=1e-5)
    np.testing.assert_allclose(images.std(dim=(0, 2, 3), unbiased=False), 1, atol=1e-5)
    np.testing.assert_allclose(
        images[0].numpy() * np.reshape(standard.deviation, (2, 1, 1)) + np.reshape(standard.mean, (2, 1, 1)),
        annotations.item_image(0).clip(*np.array(clip).T[:, :, None, None]),
        atol=1e-5,
    )
    monkeypatch.setattr(data, "MAX_BYTES_IN_MEMORY", 0)
    assert MaskDataset(annotations).measure(clip) == standard


def test_clip_values_of_other_channels_are_refused(make_cases):
    with pytest.raises(InputError, match="clip has values for 2 channels, but item item_0 has 1"):
        MaskDataset(make_cases(2)).measure(((0, 1), (0, 1)))
