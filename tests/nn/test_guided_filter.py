"""The guided filter against least squares in every window, and what it keeps that interpolation loses."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from annotruth.nn.guided_filter import EVENNESS, RADIUS, AttentionGuidedFilter, guided_coefficients


@pytest.mark.parametrize("size", [(7, 6), (3, 4, 3)])
def test_coefficients_are_those_of_weighted_ridge_regression_in_every_window(size):
    rng = np.random.default_rng(0)
    guide, values, attention = rng.normal(size=size), rng.normal(size=size), rng.uniform(0.1, 1, size)

    def window(centre):
        return tuple(slice(max(0, at - RADIUS), at + RADIUS + 1) for at in centre)

    slope, offset = np.zeros(size), np.zeros(size)
    for centre in product(*map(range, size)):
        g, v, w = (values_[window(centre)].ravel() for values_ in (guide, values, attention))
        w = w**2
        # The ridge is a further row of the system, which asks for a slope of 0.
        rows = np.vstack(
            [np.sqrt(w)[:, None] * np.column_stack([g, np.ones_like(g)]), [np.sqrt(EVENNESS * w.sum()), 0]]
        )
        slope[centre], offset[centre] = np.linalg.lstsq(rows, np.append(np.sqrt(w) * v, 0), rcond=None)[0]
    expected = [[maps[window(centre)].mean() for centre in product(*map(range, size))] for maps in (slope, offset)]
    found = guided_coefficients(*(torch.tensor(maps)[None, None] for maps in (guide, values, attention)))
    for ours, theirs in zip(found, expected):
        np.testing.assert_allclose(ours.flatten().numpy(), theirs, rtol=1e-6, atol=1e-9)


def test_an_edge_of_the_guide_comes_back_in_a_mask_that_was_made_coarse():
    rows, columns = torch.meshgrid(torch.arange(32), torch.arange(32), indexing="ij")
    mask = ((rows - 15) ** 2 + (columns - 14) ** 2 < 90).float()[None, None]
    coarse = F.avg_pool2d(mask, 4)
    guide = 2 * mask + 0.1 * torch.randn(1, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    smooth = F.interpolate(coarse, (32, 32), mode="bilinear")
    torch.manual_seed(0)
    with torch.no_grad():
        kept = AttentionGuidedFilter(channels=1)(coarse, guide)
    off = [(maps - mask).abs().mean().item() for maps in (smooth, kept)]
    assert off[1] < 0.6 * off[0]
