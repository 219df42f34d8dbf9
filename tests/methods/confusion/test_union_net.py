"""union-net on label tables, by loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import softmax

from annotruth.methods import Batch


@pytest.mark.parametrize("form", ["transition", "layer"])
def test_all_labels_of_all_raters_share_one_probability(build_shaken, given, batch, form):
    method, model = build_shaken("union-net", form=form)
    truth = softmax(model.truth(batch.images).detach().numpy(), axis=-1)
    table = np.concatenate(list(model.annotators.scores.detach().numpy()), axis=1)  # (true, raters · observed)
    union = truth @ softmax(table, axis=1) if form == "transition" else softmax(truth @ table, axis=1)
    np.testing.assert_allclose(union.sum(axis=1), 1)
    by_loops = -np.mean([np.log(union[i, 3 * r + label]) for i, r, label in given])
    assert method.loss(model, batch, 0.5)[0].item() == pytest.approx(by_loops)


def test_a_batch_may_list_some_raters(build_shaken, batch):
    method, model = build_shaken("union-net")
    some = torch.tensor([3, 1])
    listed = Batch(batch.images, batch.labels[:, some], raters=some)
    others = batch.labels.clone()
    others[:, [0, 2]] = -1
    all_listed = Batch(batch.images, others)
    torch.testing.assert_close(method.loss(model, listed, 0.5), method.loss(model, all_listed, 0.5))
