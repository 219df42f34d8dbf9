"""Masks to simulate raters on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from annotruth.simulate.morphology import smooth_field


@pytest.fixture(scope="session")
def random_truth() -> Callable[..., np.ndarray]:
    """Makes smooth masks (items, *shape)."""

    def make(seed: int, items: int = 2, shape: tuple[int, ...] = (20, 22), n_classes: int = 2) -> np.ndarray:
        rng = np.random.default_rng(seed)
        fields = np.stack([smooth_field(shape, rng) for _ in range(items)])
        return np.clip((fields - 0.55) * n_classes / 0.45 + 1, 0, n_classes - 1).astype(np.uint8)

    return make
