"""Distances against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from annotruth.fusion._em.distance import squared_distance


@pytest.mark.parametrize(
    ("shape", "spacing"),
    [((50,), (1.0,)), ((17, 23), (1.0, 1.0)), ((9, 14, 11), (0.7, 1.0, 3.0)), ((1, 5), (1.0, 2.0))],
)
@pytest.mark.parametrize("share", [0.02, 0.5])
def test_same_as_scipy(shape: tuple[int, ...], spacing: tuple[float, ...], share: float) -> None:
    mask = (np.random.default_rng(0).random(shape) < share).astype(np.uint8)
    mask.flat[3] = 1
    expected = ndimage.distance_transform_edt(mask != 1, spacing)
    np.testing.assert_allclose(
        squared_distance(mask.reshape(-1), 1, shape, spacing), expected.reshape(-1) ** 2, atol=1e-9
    )


def test_a_label_that_is_nowhere_is_infinitely_far() -> None:
    assert np.isinf(squared_distance(np.zeros(12, dtype=np.uint8), 1, (3, 4), (1.0, 1.0))).all()
