"""Discriminators: who learns from what they find."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from annotruth.nn.adversarial import PatchDiscriminator, adversarial_losses


@pytest.fixture
def judge() -> PatchDiscriminator:
    torch.manual_seed(0)
    return PatchDiscriminator(channels=2)


def test_both_losses_are_cross_entropies_over_the_patches_of_items_that_count(judge):
    real, fake = torch.rand(3, 2, 16, 16), torch.rand(3, 2, 16, 16)
    counts = torch.tensor([1.0, 0.0, 1.0])
    fools, judges = adversarial_losses(judge, real, fake, counts, counts)
    of_real, of_fake = judge(real[[0, 2]]), judge(fake[[0, 2]])
    entropy = F.binary_cross_entropy_with_logits
    torch.testing.assert_close(fools, entropy(of_fake, torch.ones_like(of_fake)))
    expected = entropy(of_real, torch.ones_like(of_real)) + entropy(of_fake, torch.zeros_like(of_fake))
    torch.testing.assert_close(judges, expected)


def test_each_loss_teaches_its_own_side_alone(judge):
    fake, ones = torch.rand(2, 2, 16, 16, requires_grad=True), torch.ones(2)
    fools, judges = adversarial_losses(judge, torch.rand(2, 2, 16, 16), fake, ones, ones)
    fools.backward(retain_graph=True)
    assert fake.grad.abs().sum() > 0
    assert all(weight.grad is None for weight in judge.parameters())
    fake.grad = None
    judges.backward()
    assert fake.grad is None
    assert all(weight.grad.abs().sum() > 0 for weight in judge.parameters())


def test_where_nobody_counts_there_is_no_loss(judge):
    maps, none = torch.rand(2, 2, 8, 8), torch.zeros(2)
    assert [loss.item() for loss in adversarial_losses(judge, maps, maps, none, none)] == [0, 0]


def test_ragged_masks_are_told_from_whole_ones_within_a_few_steps():
    torch.manual_seed(0)
    judge, counts = PatchDiscriminator(channels=1), torch.ones(8)
    optimiser = torch.optim.Adam(judge.parameters(), lr=0.01)
    for _ in range(40):
        whole = torch.zeros(8, 1, 16, 16)
        whole[:, :, 4:12, 4:12] = 1
        ragged = (whole - (torch.rand_like(whole) < 0.2).float()).abs()
        _, judges = adversarial_losses(judge, whole, ragged, counts, counts)
        optimiser.zero_grad()
        judges.backward()
        optimiser.step()
    assert judge(whole).mean() > 1
    assert judge(ragged).mean() < -1
