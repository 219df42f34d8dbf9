"""Sums over boxes, against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from annotruth.fusion._em.box_sum import box_sum
from annotruth.parallel.threads import threads


@pytest.mark.parametrize("shape", [(50,), (13, 300), (7, 9, 11), (3, 4, 5, 6)])
@pytest.mark.parametrize("side", [1, 3, 5, 21])
def test_box_sums(shape: tuple[int, ...], side: int) -> None:
    values = np.random.default_rng(0).random(shape).astype(np.float32)
    expected = ndimage.convolve(values.astype(float), np.ones((side,) * len(shape)), mode="constant")
    for count in (1, 3):
        with threads(count):
            found = box_sum(values.ravel().copy(), shape, (side,) * len(shape), np.empty(values.size, np.float32))
        np.testing.assert_allclose(found.reshape(shape), expected, rtol=1e-5, atol=1e-5)


def test_box_sums_of_uneven_windows() -> None:
    values = np.random.default_rng(0).random((8, 9)).astype(np.float32)
    found = box_sum(values.ravel().copy(), (8, 9), (1, 5), np.empty(72, np.float32)).reshape(8, 9)
    np.testing.assert_allclose(found, ndimage.convolve(values, np.ones((1, 5)), mode="constant"), rtol=1e-5)
