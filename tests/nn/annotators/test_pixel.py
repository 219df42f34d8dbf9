"""Models with one matrix per pixel: the start of many classes."""

from __future__ import annotations

import torch

from annotruth.nn import LowRankAnnotators


def test_low_rank_starts_as_faithful_with_many_classes():
    matrices = LowRankAnnotators(1, 2, classes=60, rank=3)(torch.randn(1, 1, 4, 4)).dense()
    assert matrices.diagonal(dim1=2, dim2=3).min() > 0.95
