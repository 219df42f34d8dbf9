"""Drawn shapes that stand in for real pictures, so that every experiment runs without a data folder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import ndimage

BRIGHTNESS = np.array([0.2, 0.5, 0.7], dtype=np.float32)


def shapes(n: int, size: Sequence[int], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw a rounded body in two parts, blurred and under noise, in 2D or 3D.

    Returns
    -------
    images : (n, 1, *size) float32;  truth : (n, *size) uint8, 0 = background, 1 and 2 = the parts

    Examples
    --------
    >>> images, truth = shapes(3, (16, 20))
    >>> images.shape, truth.shape, np.unique(truth).tolist()
    ((3, 1, 16, 20), (3, 16, 20), [0, 1, 2])
    """
    rng = np.random.default_rng(seed)
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, length) for length in size], indexing="ij"))
    images = np.empty((n, 1, *size), dtype=np.float32)
    truth = np.empty((n, *size), dtype=np.uint8)
    for item in range(n):
        centre, radii = rng.uniform(-0.25, 0.25, len(size)), rng.uniform(0.3, 0.6, len(size))
        away = grid - centre.reshape(-1, *[1] * len(size))
        body = ((away / radii.reshape(-1, *[1] * len(size))) ** 2).sum(axis=0) < 1
        truth[item] = np.where(body, np.where(away[-1] < rng.uniform(-0.1, 0.1), 1, 2), 0)
        blurred = ndimage.gaussian_filter(BRIGHTNESS[truth[item]], 1.0)
        images[item, 0] = blurred + 0.2 * rng.standard_normal(size, dtype=np.float32)
    return images, truth
