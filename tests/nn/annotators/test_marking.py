"""How much of each class is marked, and how rightly, found while a network learns from the marks alone."""

from __future__ import annotations

import pytest
import torch

from annotruth.nn import Complement, Marking

SAID_NOT = Complement(3)().detach()
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
    marking = Marking(1, 3)
    positive = marked(truth, [0.9, 0.3, 0.1])
    for _ in range(200):
        marking.count(log_truth, positive, NOTHING, SAID_NOT)
    shares = [(positive[:, 0] == c).sum() / (truth == c).sum() for c in range(3)]
    torch.testing.assert_close(marking.marks.sum(dim=(0, 2)) / marking.pixels, torch.stack(shares), atol=0.01, rtol=0)


def test_negative_marks_count_for_what_is_left(truth):
    log_truth = torch.nn.functional.one_hot(truth, 3).movedim(-1, 1).float().clamp_min(1e-9).log()
    marking = Marking(1, 3)
    not_two = torch.where(truth == 0, 2, 255).to(torch.uint8)[:, None]  # class 0 is marked as not being class 2
    for _ in range(200):
        marking.count(log_truth, NOTHING, not_two, SAID_NOT)
    torch.testing.assert_close(
        marking.marks.sum(dim=(0, 2)) / marking.pixels, torch.tensor([1.0, 0.0, 0.0]), atol=0.01, rtol=0
    )


def test_images_without_a_mark_do_not_count(truth):
    log_truth = torch.full((4, 3, 500), 1 / 3).log()
    marking = Marking(1, 3)
    positive = marked(truth, [0.5, 0.5, 0.5])
    positive[2:] = 255
    for _ in range(200):
        marking.count(log_truth, positive, NOTHING, SAID_NOT)
    torch.testing.assert_close(marking.marks.sum() / marking.pixels.sum(), torch.tensor(0.5), atol=0.05, rtol=0)


def test_errors_of_each_person_are_counted(truth):
    log_truth = torch.nn.functional.one_hot(truth, 3).movedim(-1, 1).float().clamp_min(1e-9).log()
    ann = marked(truth, [0.5, 0.5, 0.5])
    bob = torch.where(ann == 2, 1, ann)  # takes all of class 2 for class 1
    says_not_two = torch.where((truth == 2)[:, None], 2, 255).to(torch.uint8)  # of what is class 2 indeed
    marking = Marking(3, 3)
    nothing = NOTHING.expand(-1, 2, -1)
    for _ in range(200):
        marking.count(
            log_truth, torch.cat([ann, bob, NOTHING], dim=1), torch.cat([nothing, says_not_two], dim=1), SAID_NOT
        )
    errors = marking.errors()
    torch.testing.assert_close(errors.sum(dim=2), torch.ones(3, 3))
    torch.testing.assert_close(errors[0], torch.eye(3), atol=0.03, rtol=0)
    torch.testing.assert_close(errors[1, 2], torch.tensor([0.0, 1.0, 0.0]), atol=0.03, rtol=0)
    torch.testing.assert_close(errors[2, 2], torch.tensor([0.5, 0.5, 0.0]), atol=0.03, rtol=0)


def test_counts_are_those_of_em(truth):
    """One step against a sum over all pixels, marks and classes, written out."""
    log_truth = torch.randn(4, 3, 50, generator=torch.Generator().manual_seed(2)).log_softmax(dim=1)
    positive, negative = marked(truth[:, :50], [0.4, 0.4, 0.4]), marked(truth[:, 50:100], [0.4, 0.4, 0.4])
    marking = Marking(1, 3)
    marking.marks.copy_(torch.tensor([[[5.0, 1.0, 2.0], [1.0, 6.0, 1.0], [2.0, 2.0, 9.0]]]))
    before, errors, said_not = marking.marks.clone(), marking.errors()[0], SAID_NOT.exp()
    of_marked = marking.of_marked(log_truth).exp()
    expected = torch.zeros(3, 3)
    for item in range(4):
        for pixel in range(50):
            joint = of_marked[item, :, pixel, None] * errors  # [true, taken for]
            mark, other = int(positive[item, 0, pixel]), int(negative[item, 0, pixel])
            if mark != 255:
                expected[:, mark] += joint[:, mark] / joint[:, mark].sum()
            if other != 255:
                left = joint * said_not[:, other]
                expected += left / left.sum()
    marking.count(log_truth, positive, negative, SAID_NOT)
    torch.testing.assert_close(marking.marks[0], 0.97 * before[0] + expected, rtol=1e-4, atol=1e-4)
