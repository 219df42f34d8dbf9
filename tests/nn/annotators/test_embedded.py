"""Matrices of raters and items from vectors of both."""

from __future__ import annotations

import torch

from annotruth.nn import EmbeddedAnnotators, item_embedding


def test_matrices_are_read_from_both_vectors_and_their_product():
    torch.manual_seed(0)
    model, images = EmbeddedAnnotators(channels=2, raters=4, classes=3, dims=0), torch.randn(5, 2)
    matrices = model(images).dense()
    item, rater = model.items(images)[2], model.raters[1]
    hidden = (model.hidden(torch.cat([item, rater, item * rater])) + rater).relu()
    torch.testing.assert_close(matrices[2, 1], model.output(hidden).view(3, 3).softmax(dim=1))
    torch.testing.assert_close(model(images, torch.tensor([3, 1])).dense(), matrices[:, [3, 1]])


def test_raters_are_right_eight_times_in_ten_at_first():
    torch.manual_seed(0)
    right = EmbeddedAnnotators(channels=2, raters=4, classes=5, dims=0)(torch.randn(9, 2)).dense()
    assert 0.75 < right.diagonal(dim1=2, dim2=3).mean() < 0.85


def test_pictures_and_volumes_have_vectors_too():
    assert item_embedding(3, dims=2)(torch.zeros(2, 3, 17, 12)).shape == (2, 16)
    assert item_embedding(1, dims=3)(torch.zeros(2, 1, 8, 9, 10)).shape == (2, 16)
