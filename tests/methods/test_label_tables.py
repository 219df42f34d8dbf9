"""What losses on label tables have in common: they count answers that were given, and those alone."""

from __future__ import annotations

import pytest
import torch

from annotruth.methods import Batch

RATERS = 4
ONE_TARGET = ["majority", "dawid-skene", "shared-cm", "soft-bootstrap"]
PER_RATER = ["crowd-layer", "doctor-net", "max-mig"]


@pytest.mark.parametrize("name", PER_RATER)
def test_raters_who_are_not_in_a_batch_are_left_alone(name, sparse_batch, build_shaken):
    """The gradient has rows for those who are; the loss is the same as with a column for everybody."""
    method, model = build_shaken(name)
    images, labels, *_ = sparse_batch(6, RATERS, 3, torch.float64)
    labels[:, 1] = -1
    listed = Batch(images, labels[:, [0, 2, 3]], raters=torch.tensor([0, 2, 3]))
    loss, _ = method.loss(model, listed, 0.5)
    loss.backward()
    for numbers in model.annotators.parameters():
        assert numbers.grad.is_sparse
        assert numbers.grad.coalesce().indices().tolist() == [[0, 2, 3]]
    if name != "doctor-net":  # whose weights are shared among those of a batch
        assert loss.item() == pytest.approx(method.loss(model, Batch(images, labels), 0.5)[0].item())


@pytest.mark.parametrize(("name", "targets"), [*((n, 1) for n in ONE_TARGET), *((n, RATERS) for n in PER_RATER)])
def test_nothing_answered_costs_nothing(name, targets, build_shaken):
    method, model = build_shaken(name)
    loss, _ = method.loss(model, Batch(torch.ones(2, 2).double(), torch.full((2, targets), -1)), 0.5)
    loss.backward()
    assert loss.item() == 0
