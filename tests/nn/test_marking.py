"""How much of each class is marked, found while a network learns from the marks alone."""

from __future__ import annotations

import pytest
import torch

from annotruth.nn.marking import MarkingRates

NOTHING = torch.full((4, 1, 500), 255, dtype=torch.uint8)


@pytest.fixture
def truth():
    return torch.randint(0, 3, (4, 500), generator=torch.Generator().manual_seed(0))


def marked(truth, rates):
    """Marks of pixels, by the rate of their class."""
    chance = torch.rand(truth.shape, generator=torch.Generator().manual_seed(1))
    return torch.where(chance < torch.tensor(rates)[truth], truth, 255).to(torch.uint8)[:, None]


def test_positive_marks_are_counted(truth):
    log_truth = torch.nn.functional.one_hot(truth, 3).movedim(-1, 1).float().clamp_min(1e-9).log()
    rates = MarkingRates(3)
    positive = marked(truth, [0.9, 0.3, 0.1])
    for _ in range(200):
        rates.count(log_truth, positive, NOTHING)
    shares = [(positive[:, 0] == c).sum() / (truth == c).sum() for c in range(3)]
    torch.testing.assert_close(rates.marks / rates.pixels, torch.stack(shares), atol=0.01, rtol=0)


def test_negative_marks_count_for_what_is_left(truth):
    log_truth = torch.nn.functional.one_hot(truth, 3).movedim(-1, 1).float().clamp_min(1e-9).log()
    rates = MarkingRates(3)
    not_two = torch.where(truth == 0, 2, 255).to(torch.uint8)[:, None]  # class 0 is marked as not being class 2
    for _ in range(200):
        rates.count(log_truth, NOTHING, not_two)
    torch.testing.assert_close(rates.marks / rates.pixels, torch.tensor([1.0, 0.0, 0.0]), atol=0.01, rtol=0)


def test_images_without_a_mark_do_not_count(truth):
    log_truth = torch.full((4, 3, 500), 1 / 3).log()
    rates = MarkingRates(3)
    positive = marked(truth, [0.5, 0.5, 0.5])
    positive[2:] = 255
    for _ in range(200):
        rates.count(log_truth, positive, NOTHING)
    torch.testing.assert_close(rates.marks.sum() / rates.pixels.sum(), torch.tensor(0.5), atol=0.05, rtol=0)
