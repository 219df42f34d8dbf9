"""The annotator model that foretells drawings."""

from __future__ import annotations

import torch

from annotruth.nn import DrawingAnnotators


def test_drawings_are_probabilities_of_each_raters_labels_in_two_and_three_dimensions():
    for size in [(11, 14), (9, 10, 8)]:
        annotators = DrawingAnnotators(in_channels=2, raters=3, classes=4, dims=len(size))
        drawings, features = annotators.foretell(torch.rand(2, 2, *size))
        assert drawings.shape == (2, 3, 4, *size)
        torch.testing.assert_close(drawings.exp().sum(dim=2), torch.ones(2, 3, *size))
        some = annotators.errors(features, torch.tensor([2, 0]))
        torch.testing.assert_close(some.dense(), annotators.errors(features).dense()[:, [2, 0]])


def test_matrices_start_near_the_identity():
    matrices = DrawingAnnotators(in_channels=1, raters=2, classes=3)(torch.rand(1, 1, 8, 8)).dense()
    diagonal = matrices.diagonal(dim1=2, dim2=3)
    assert diagonal.min() > 0.9
