"""A scene to draw on."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def scene():
    """A bright box on a noisy ground: image (1, 24, 24) and where the box is."""
    inside = np.zeros((24, 24), dtype=bool)
    inside[6:16, 8:19] = True
    return (inside * 2.0 + 0.2 * np.random.default_rng(0).standard_normal((24, 24)))[None], inside
