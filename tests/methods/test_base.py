"""The head start of methods that would lose small structures without one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from annotruth.methods import Batch, DataSpec, make_method
from annotruth.methods.base import HEAD_START

STARTERS = ("aggnet", "crowd-layer", "gem", "mbem", "mrnet", "phiseg", "shared-cm", "tgce")


@pytest.mark.parametrize("name", STARTERS)
def test_in_a_head_start_labels_are_learnt_at_their_word_and_by_overlap(name):
    torch.manual_seed(0)
    method = make_method(name, "masks")
    model = method.build(DataSpec(channels=1, raters=3, classes=2, dims=2)).eval()
    labels = torch.randint(0, 2, (2, method.n_targets(DataSpec(1, 3, 2, 2)), 16, 16), dtype=torch.uint8)
    labels[0, 0, :4] = 255
    batch = Batch(torch.randn(2, 1, 16, 16), labels)
    with torch.no_grad():
        early, likelihood = method.training_loss(model, batch, HEAD_START - 0.01)
        nodule = model.log_truth(batch.images).exp()[:, 1].numpy()
    of_raters, nats, given = [], 0.0, 0
    for rater in range(labels.shape[1]):
        said = labels[:, rater].numpy()
        there = said != 255
        nats -= np.log(np.where(said == 1, nodule, 1 - nodule)[there]).sum()
        given += there.sum()
        overlap = (nodule * (said == 1))[there].sum()
        of_raters.append(1 - (2 * overlap + 1) / (nodule[there].sum() + (said == 1).sum() + 1))
    assert likelihood.item() == pytest.approx(nats / given, rel=1e-4)
    assert early.item() == pytest.approx(nats / given + np.mean(of_raters), rel=1e-4)


@pytest.mark.parametrize("name", STARTERS)
def test_after_the_head_start_the_loss_is_the_methods_own(name):
    method = make_method(name, "masks")
    model = method.build(DataSpec(channels=1, raters=3, classes=2, dims=2)).eval()
    labels = torch.randint(0, 2, (2, method.n_targets(DataSpec(1, 3, 2, 2)), 16, 16), dtype=torch.uint8)
    batch = Batch(torch.randn(2, 1, 16, 16), labels)
    losses = []
    for of_method in (method.training_loss, method.loss):
        torch.manual_seed(0)  # some draw points at random
        losses.append(of_method(model, batch, HEAD_START)[0].item())
    assert losses[0] == losses[1]


def test_label_tables_have_no_head_start(build, sparse_batch):
    method, model = build("crowd-layer")
    batch = sparse_batch(5, 4, 3, torch.float64)
    assert method.training_loss(model, batch, 0.0)[0] == method.loss(model, batch, 0.0)[0]
