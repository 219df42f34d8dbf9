"""The exponential that the kernels use."""

from __future__ import annotations

import numpy as np

from annotruth.fusion._em.em_kernels import _exp_in_place


def test_exponential_is_exact_to_rounding() -> None:
    values = np.concatenate([[0.0, -np.inf, -1e-300, -745.0, -700.0, -800.0], -np.geomspace(1e-12, 699, 5000)])
    found = values.copy()
    _exp_in_place(found, len(found))
    np.testing.assert_allclose(found[values > -700], np.exp(values[values > -700]), rtol=5e-16)
    assert (found[values <= -700] == 0).all()
