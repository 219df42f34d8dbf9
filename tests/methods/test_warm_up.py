"""The warm-up: who has a say, and what it teaches."""

import torch

from annotruth.methods import Batch, Shape, make_method
from annotruth.methods.warm_up import informedness, warm_up_loss
from annotruth.nn import GlobalAnnotators, IdentityConfusion, noisy_label_loss


def scene():
    """A truth of two classes, a rater who is right, one who errs in a quarter of the places, one who says nothing."""
    generator = torch.Generator().manual_seed(0)
    truth = (torch.rand(4, 16, 16, generator=generator) < 0.3).long()
    flipped = torch.where(torch.rand(4, 16, 16, generator=generator) < 0.25, 1 - truth, truth)
    labels = torch.stack([truth, flipped, torch.zeros_like(truth)], dim=1).to(torch.uint8)
    return torch.nn.functional.one_hot(truth, 2).movedim(-1, 1).float(), labels


def test_informedness_by_hand():
    truth, labels = scene()
    told = informedness(truth, labels)
    right = [((labels[:, 1] == c) * truth[:, c]).sum() / truth[:, c].sum() for c in range(2)]
    torch.testing.assert_close(told, torch.stack([torch.tensor(1.0), right[0] + right[1] - 1, torch.tensor(0.0)]))


def test_missing_labels_tell_nothing_and_spoil_nothing():
    truth, labels = scene()
    labels[:2, 0] = 255
    labels[:, 2] = 255
    told = informedness(truth, labels)
    assert told[0] == 1
    assert told[2] == 0


def test_first_half_takes_everybody_at_their_word():
    truth, labels = scene()
    log_truth = truth.clamp(0.1, 0.9).log().requires_grad_()
    loss, _ = warm_up_loss(log_truth, labels, 0.2, confusion=lambda: 1 / 0)
    torch.testing.assert_close(loss, noisy_label_loss(log_truth, IdentityConfusion(3, 2), labels)[0])


def test_second_half_leaves_the_silent_rater_out_and_teaches_errors_without_touching_the_truth():
    truth, labels = scene()
    log_truth = truth.clamp(0.1, 0.9).log().requires_grad_()
    annotators = GlobalAnnotators(3, 2)
    _, likelihood = warm_up_loss(log_truth, labels, 0.7, lambda: annotators(truth))
    without = noisy_label_loss(log_truth, IdentityConfusion(2, 2), labels[:, :2])[0]
    torch.testing.assert_close(likelihood, without)

    optimiser = torch.optim.Adam(annotators.parameters(), lr=0.1)
    for _ in range(150):
        loss, _ = warm_up_loss(log_truth, labels, 0.7, lambda: annotators(truth))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    matrices = annotators(truth).dense()[0]
    assert matrices[2, 1, 0] > 0.95  # the silent one calls everything class 0
    assert matrices[0, 1, 1] > 0.95
    gradient = torch.autograd.grad(warm_up_loss(log_truth, labels, 0.7, lambda: annotators(truth))[0], log_truth)[0]
    torch.testing.assert_close(gradient, torch.autograd.grad(without, log_truth)[0])


def test_methods_with_matrices_warm_up_and_then_settle():
    method = make_method("global-cm", {"warmup": 0.5, "trace_weight": 0.0})
    parts = method.build(Shape(1, 3, 2, 2))
    _, labels = scene()
    images = torch.rand(4, 1, 16, 16)
    parts.eval()
    early, _ = method.loss(parts, Batch(images, labels), progress=0.1)
    torch.testing.assert_close(early, noisy_label_loss(parts.log_truth(images), IdentityConfusion(3, 2), labels)[0])
    late, _ = method.loss(parts, Batch(images, labels), progress=0.6)
    torch.testing.assert_close(late, noisy_label_loss(parts.log_truth(images), parts.annotators(images), labels)[0])
