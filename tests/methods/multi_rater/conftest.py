"""What tests of distributions of masks share: squares that one rater draws as they are, and another as the mood is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from annotruth import Annotations, Segmenter

Moods = Callable[..., Annotations]


@pytest.fixture(scope="session")
def moods() -> Moods:
    """Makes noisy images (items, 1, 16, 16) of squares with masks by "steady", who draws them, and by "moody".

    Moody draws all of a square much too large, or all of it too small, and nothing tells which it will be.
    """

    def make(items: int, seed: int = 0) -> Annotations:
        rng = np.random.default_rng(seed)
        images = rng.normal(0, 0.2, (items, 1, 16, 16)).astype(np.float32)
        masks = np.zeros((items, 2, 16, 16), dtype=np.uint8)
        for number, (image, (steady, moody)) in enumerate(zip(images[:, 0], masks)):
            top, left = rng.integers(3, 6, 2)
            image[top : top + 7, left : left + 7] += 1
            steady[top : top + 7, left : left + 7] = 1
            more = (2, -2)[(number + seed) % 2]
            moody[top - more : top + 7 + more, left - more : left + 7 + more] = 1
        return Annotations.from_masks(masks, images, raters=["steady", "moody"])

    return make


@pytest.fixture(scope="session")
def fit_moods(moods) -> Callable[..., Segmenter]:
    """Trains a method on 24 of these squares, or on other annotations."""

    def fitted(method: str, max_epochs: int = 16, annotations: Annotations | None = None, **options) -> Segmenter:
        model = Segmenter(
            method, max_epochs=max_epochs, batch_size=4, validation=0, learning_rate=0.01, progress=False, **options
        )
        return model.fit(annotations or moods(24))

    return fitted


@pytest.fixture(scope="session")
def borders() -> Callable[[np.ndarray], float]:
    """Tells how many of the neighbouring pixels (..., height, width) of drawings differ."""

    def share(drawings: np.ndarray) -> float:
        across, down = (np.diff(drawings.astype(int), axis=axis) != 0 for axis in (-1, -2))
        return float((across.mean() + down.mean()) / 2)

    return share
