"""The preference for one class among neighbours that look alike, against loops over pairs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

from annotruth.nn.losses.smoothness import NEIGHBOUR_DISTANCES, smoothness_loss


def by_loops(truth, image):
    """Every ordered pair of pixels of one image, in the eight (26) directions, at the three distances."""
    size = truth.shape[1:]
    squares = [((np.diff(image, axis=axis + 1)) ** 2).sum(axis=0).mean() for axis in range(len(size))]
    spread = np.mean(squares)
    differing = weights = 0.0
    for here in product(*map(range, size)):
        for direction, step in product(product((-1, 0, 1), repeat=len(size)), NEIGHBOUR_DISTANCES):
            there = tuple(p + step * d for p, d in zip(here, direction))
            if there == here or not all(0 <= p < n for p, n in zip(there, size)):
                continue
            weight = np.exp(-((image[(slice(None), *here)] - image[(slice(None), *there)]) ** 2).sum() / (2 * spread))
            differing += weight * (1 - (truth[(slice(None), *here)] * truth[(slice(None), *there)]).sum())
            weights += weight
    return differing / weights


@pytest.mark.parametrize("size", [(6, 7), (5, 3, 6)])
def test_is_that_of_loops(size):
    torch.manual_seed(0)
    images = torch.randn(1, 2, *size, dtype=torch.float64)
    log_truth = torch.randn(1, 3, *size, dtype=torch.float64).log_softmax(dim=1)
    wanted = by_loops(log_truth.exp()[0].numpy(), images[0].numpy())
    np.testing.assert_allclose(smoothness_loss(log_truth, images).item(), wanted)


def test_an_even_image_and_a_tiny_one_do_no_harm():
    log_truth = torch.randn(2, 2, 3, 3, requires_grad=True)
    loss = smoothness_loss(log_truth.log_softmax(dim=1), torch.zeros(2, 1, 3, 3))
    loss.backward()
    assert 0 < loss < 1
    assert torch.isfinite(log_truth.grad).all()
