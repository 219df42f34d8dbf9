"""pixel-cm-lowrank: drawings are foretold first, as by pixel-cm, and errors are read from the same features."""

from __future__ import annotations

import pytest
import torch

from annotruth.errors import InputError
from annotruth.methods import Batch, DataSpec, make_method
from annotruth.methods.anchor import AnchoredModel
from annotruth.nn import LowRankAnnotators, LowRankConfusion

SPEC = DataSpec(channels=1, raters=3, classes=12, dims=2)


def test_matrices_of_low_rank_are_read_from_features_that_foretell_drawings():
    torch.manual_seed(0)
    method = make_method("pixel-cm-lowrank", "masks", {"rank": 2})
    model = method.build(SPEC)
    assert isinstance(model, AnchoredModel)
    images = torch.randn(2, 1, 16, 16)
    confusion = model.confusion(images)
    assert isinstance(confusion, LowRankConfusion)
    torch.testing.assert_close(confusion.dense().sum(dim=3), torch.ones(2, 3, 12, 16, 16))
    some = model.confusion(images, torch.tensor([2, 0])).dense()
    torch.testing.assert_close(some, confusion.dense()[:, [2, 0]])
    labels = torch.randint(0, 12, (2, 3, 16, 16)).to(torch.uint8)
    for anchor, progress in ((-1, 0.1), (1, 0.6), (1, 0.9)):  # foretell; learn errors; both together
        model.anchor.fill_(anchor)
        loss, _ = method.loss(model, Batch(images, labels), progress)
        assert torch.isfinite(loss)


def test_a_number_weighs_raters_by_their_consensus():
    method = make_method("pixel-cm-lowrank", "masks", {"warmup": 0.4})
    assert isinstance(method.build(SPEC).annotators, LowRankAnnotators)
    with pytest.raises(InputError, match="warmup"):
        make_method("pixel-cm-lowrank", "masks", {"warmup": "trace"})
