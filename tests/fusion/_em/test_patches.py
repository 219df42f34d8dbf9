"""Soft labels against plain loops over search boxes and patches."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from annotruth.fusion._em.patches import PatchSearch


@pytest.mark.parametrize(("shape", "n_channels", "own"), [((7, 6), 1, False), ((7, 6), 2, True), ((4, 5, 4), 1, True)])
def test_same_as_plain_loops(shape: tuple[int, ...], n_channels: int, own: bool) -> None:
    rng = np.random.default_rng(0)
    target = rng.normal(5, 3, (n_channels, *shape))
    source = rng.normal(2, 1, target.shape) if own else target
    masks = rng.integers(0, 3, (2, *shape)).astype(np.uint8)
    masks[rng.random(masks.shape) < 0.2] = 255
    spacing = (1.0, 2.0, 1.0)[: len(shape)]
    flat = target.reshape(n_channels, -1)
    search = PatchSearch(
        flat, source.reshape(n_channels, -1) if own else flat, shape, search_radius=2, patch_radius=1,
        intensity_scale=0.8, distance_scale=1.5, spacing=spacing,
    )  # fmt: skip
    found = search.soft_labels(masks.reshape(2, -1), np.arange(int(np.prod(shape))), 3)

    axes = tuple(range(1, len(shape) + 1))
    first, second = (
        np.pad(
            (each - each.mean(axes, keepdims=True)) / each.std(axes, keepdims=True),
            [(0, 0)] + [(1, 1)] * len(shape),
            "edge",
        )
        for each in (target, source)
    )

    def patch(image: np.ndarray, place: tuple[int, ...]) -> np.ndarray:
        return image[(slice(None), *(slice(p, p + 3) for p in place))]

    for number, place in enumerate(np.ndindex(shape)):
        expected = np.zeros((2, 3))
        for step in product(range(-2, 3), repeat=len(shape)):
            there = tuple(p + s for p, s in zip(place, step))
            if any(t < 0 or t >= n for t, n in zip(there, shape)):
                continue
            gap = ((patch(first, place) - patch(second, there)) ** 2).mean()
            apart = sum((s * w) ** 2 for s, w in zip(step, spacing))
            weight = np.exp(-gap / (2 * 0.8**2) - apart / (2 * 1.5**2))
            for rater in range(2):
                if masks[(rater, *there)] != 255 and masks[(rater, *place)] != 255:
                    expected[rater, masks[(rater, *there)]] += weight
        expected /= np.maximum(expected.sum(axis=1, keepdims=True), 1e-300)
        np.testing.assert_allclose(found[:, :, number], expected, atol=1e-5)
