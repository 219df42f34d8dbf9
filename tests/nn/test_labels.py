"""Labels in tensors: the likeliest class, decayed sums to the bit, and the old name of is_labelled."""

from __future__ import annotations

import pytest
import torch

import annotruth.nn
from annotruth.nn import decay_and_add_, is_labelled, one_hot_argmax
from annotruth.nn.labels import one_hot


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int64])
def test_missing_labels_are_none_of_the_classes(dtype):
    missing = 255 if dtype == torch.uint8 else -1
    labels = torch.tensor([0, 2, 3, missing], dtype=dtype)
    assert is_labelled(labels, 3).tolist() == [True, True, False, False]
    assert one_hot(labels, 3, dim=0).sum(dim=0).tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize("dim", [1, 2])
def test_one_hot_of_the_largest_score(dim):
    scores = torch.randn(4, 5, 6, 7, requires_grad=True)
    best = one_hot_argmax(scores, dim)
    assert not best.requires_grad
    assert torch.equal(best.sum(dim=dim), torch.ones_like(best.sum(dim=dim)))
    torch.testing.assert_close((best * scores).sum(dim=dim), scores.amax(dim=dim))


def test_of_equal_scores_the_first_is_the_largest():
    assert one_hot_argmax(torch.zeros(1, 3)).tolist() == [[1, 0, 0]]


def test_a_decayed_sum_is_that_of_two_steps_to_the_bit():
    """Whatever was counted in place before must go on as it was."""
    generator = torch.Generator().manual_seed(0)
    total, new = 1e3 * torch.rand(2, 1000, 3, generator=generator), torch.rand(2, 1000, 3, generator=generator)
    who = torch.randperm(1000, generator=generator)[:400]
    everywhere, some = total.clone(), total.clone()
    decay_and_add_(everywhere, new, keep=0.97)
    assert torch.equal(everywhere, total.clone().mul_(0.97).add_(new))
    decay_and_add_(some, new[:, who], keep=0.97, where=(slice(None), who))
    assert torch.equal(some[:, who], everywhere[:, who])
    others = torch.ones(1000, dtype=torch.bool).index_fill(0, who, False)
    assert torch.equal(some[:, others], total[:, others])


def test_the_old_name_of_is_labelled_works_with_a_warning():
    with pytest.warns(DeprecationWarning, match=r"annotruth\.nn\.is_given is annotruth\.nn\.is_labelled now") as warned:
        from annotruth.nn import is_given
    assert is_given is is_labelled
    assert warned[0].filename == __file__  # it points at whoever uses the old name


def test_other_names_are_unknown_as_ever():
    with pytest.raises(AttributeError, match=r"module 'annotruth\.nn' has no attribute 'is_giving'"):
        _ = annotruth.nn.is_giving
