"""The overlap of masks as a loss."""

from __future__ import annotations

import pytest
import torch
from monai.losses import DiceLoss

from annotruth.nn import dice_loss
from annotruth.nn.labels import one_hot
from annotruth.nn.losses.dice import SMOOTH


@pytest.mark.parametrize(("classes", "size"), [(2, (6, 7)), (4, (5, 4)), (3, (3, 4, 5))])
def test_it_is_monais_over_the_whole_batch(classes, size):
    torch.manual_seed(0)
    log_truth = torch.randn(3, classes, *size).log_softmax(dim=1)
    labels = torch.randint(0, classes, (3, *size), dtype=torch.uint8)
    theirs = DiceLoss(include_background=False, batch=True, smooth_nr=SMOOTH, smooth_dr=SMOOTH)
    torch.testing.assert_close(dice_loss(log_truth, labels), theirs(log_truth.exp(), one_hot(labels, classes)))


def test_what_is_not_labelled_does_not_count():
    torch.manual_seed(1)
    log_truth = torch.randn(2, 3, 6, 8).log_softmax(dim=1)
    labels = torch.randint(0, 3, (2, 6, 8), dtype=torch.uint8)
    labels[:, :, 5:] = 255
    torch.testing.assert_close(dice_loss(log_truth, labels), dice_loss(log_truth[..., :5], labels[..., :5]))
    assert dice_loss(log_truth, torch.full_like(labels, 255)) == 0


def test_a_class_that_nobody_drew_is_learnt_to_be_absent():
    scores = torch.zeros(1, 2, 4, 4, requires_grad=True)
    dice_loss(scores.log_softmax(dim=1), torch.zeros(1, 4, 4, dtype=torch.uint8)).backward()
    assert (scores.grad[:, 1] > 0).all()


def test_gradients_are_those_of_finite_differences():
    torch.manual_seed(2)
    scores = torch.randn(2, 3, 4, dtype=torch.double, requires_grad=True)
    labels = torch.tensor([[0, 1, 2, 255], [1, 1, 0, 2]], dtype=torch.uint8)
    assert torch.autograd.gradcheck(lambda s: dice_loss(s.log_softmax(dim=1), labels), scores)
