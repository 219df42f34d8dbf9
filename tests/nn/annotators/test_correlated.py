"""Annotators whose errors come together: moods are drawn anew in training, and are kept afterwards."""

from __future__ import annotations

import torch

from annotruth.nn import CorrelatedHeads


def test_moods_change_in_training_and_not_afterwards():
    torch.manual_seed(0)
    heads, features = CorrelatedHeads(in_channels=4, raters=3, classes=2, rank=2, draws=5), torch.randn(2, 4, 3, 3)
    assert heads(features).points.shape == (5, 2, 3, 2)
    assert not torch.equal(heads(features).points, heads(features).points)
    heads.eval()
    torch.testing.assert_close(heads(features).dense(), heads(features).dense())


def test_matrices_of_some_raters_are_those_among_all():
    torch.manual_seed(0)
    heads, features = CorrelatedHeads(in_channels=4, raters=3, classes=2).eval(), torch.randn(2, 4, 3, 3)
    torch.testing.assert_close(heads(features, torch.tensor([2, 0])).dense(), heads(features).dense()[:, [2, 0]])
    near = heads(features).dense().diagonal(dim1=2, dim2=3)
    assert near.min() > 0.9  # everybody begins as faithful
