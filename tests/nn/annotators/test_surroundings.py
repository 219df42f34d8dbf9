"""Matrices read from what stands around a pixel."""

from __future__ import annotations

import pytest
import torch

from annotruth.nn import PixelHeads
from annotruth.nn.annotators.surroundings import WIDTH, Surrounded


@pytest.mark.parametrize("dims", [2, 3])
def test_a_pixels_matrix_depends_on_the_pixels_around(dims):
    torch.manual_seed(0)
    model = Surrounded(4, PixelHeads(4 + WIDTH, raters=3, classes=2), dims)
    before = torch.randn(1, 4, *[9] * dims)
    after = before.clone()
    after[..., 4] += torch.randn(4, *[1] * (dims - 1))
    changed = (model(before).dense() - model(after).dense()).abs().amax(dim=tuple(range(4 + dims - 1)))
    assert changed[[3, 5]].min() > 3 * changed[[0, 8]].max()  # far away by the norm over the image alone


def test_matrices_of_some_raters_are_those_among_all():
    torch.manual_seed(0)
    model, features = Surrounded(4, PixelHeads(4 + WIDTH, raters=3, classes=2)), torch.randn(2, 4, 5, 6)
    torch.testing.assert_close(model(features, torch.tensor([2, 0])).dense(), model(features).dense()[:, [2, 0]])
