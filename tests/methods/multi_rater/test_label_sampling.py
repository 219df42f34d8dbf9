"""label-sampling: one rater an image, drawn evenly; judged by all."""

from __future__ import annotations

import torch

from annotruth.methods import Batch, DataSpec, make_method
from annotruth.methods.multi_rater.label_sampling import one_rater_each


def test_label_sampling_draws_evenly_among_those_who_labelled():
    labels = torch.full((400, 3, 2), 255, dtype=torch.uint8)
    labels[:, 0], labels[:, 2, 0] = 0, 1  # the second labelled nothing, the third one pixel
    torch.manual_seed(0)
    drawn = one_rater_each(labels, classes=2)
    assert drawn.shape == (400, 1, 2)
    assert 150 < (drawn[:, 0, 0] == 1).sum() < 250
    assert ((drawn[:, 0, 0] == 0) | (drawn[:, 0, 1] == 255)).all()


def test_label_sampling_is_judged_by_all_labels():
    torch.manual_seed(0)
    method = make_method("label-sampling", "masks")
    model = method.build(DataSpec(channels=1, raters=3, classes=2, dims=2)).eval()
    batch = Batch(torch.randn(2, 1, 8, 8), torch.randint(0, 2, (2, 3, 8, 8), dtype=torch.uint8))
    everybody = torch.nn.functional.nll_loss(
        model.log_truth(batch.images).repeat_interleave(3, dim=0), batch.labels.flatten(0, 1).long()
    )
    torch.testing.assert_close(method.loss(model, batch, 0.5)[1], everybody.detach())
