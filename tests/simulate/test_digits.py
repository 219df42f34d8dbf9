"""The bundled demo data."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth.errors import InputError
from annotruth.simulate import noisy_digits


def test_pictures_masks_and_digits_go_together():
    images, truth, digits = noisy_digits(200, noise=0)
    assert images.dtype == np.float32
    assert truth.dtype == np.uint8
    np.testing.assert_array_equal(truth, images[:, 0] > 0)
    assert set(digits) == set(range(10))


def test_noise_is_gaussian_clipped_and_the_choice_is_reproducible():
    images, truth, digits = noisy_digits(300, seed=3)
    clean, same_truth, same_digits = noisy_digits(300, seed=3, noise=0)
    np.testing.assert_array_equal(truth, same_truth)
    np.testing.assert_array_equal(digits, same_digits)
    assert images.min() == 0
    assert images.max() == 1
    middle = (clean > 0.45) & (clean < 0.55)
    assert (images - clean)[middle].std() == pytest.approx(0.24, abs=0.02)  # 0.25 but for the clipping
    assert (noisy_digits(300, seed=4)[2] != digits).any()


def test_a_digit_does_not_depend_on_how_many_are_asked_for():
    few, many = noisy_digits(5, seed=1), noisy_digits(50, seed=1)
    for part, whole in zip(few, many, strict=True):
        np.testing.assert_array_equal(part, whole[:5])


@pytest.mark.parametrize("arguments", [{"n": 0}, {"n": 5001}, {"noise": -1.0}])
def test_impossible_wishes_are_refused(arguments):
    with pytest.raises(InputError):
        noisy_digits(**arguments)
