"""What may be the truth: everybody's drawings, and what all of them say together."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
import torch

from annotruth.data.annotations import Annotations
from annotruth.fusion import DawidSkene
from annotruth.methods.anchor.labellings import FUSED, TOGETHER, VOTE, Labellings, fused_confusion, labelling_count
from annotruth.methods.anchor.offsets import SHIFTS


def chances(says_one: list[list[float]]) -> torch.Tensor:
    """Log-probabilities (1, raters, 2, 1, pixels) of drawings that say one so surely."""
    one = torch.tensor(says_one)
    return torch.stack([1 - one, one], dim=1).log().unsqueeze(0).unsqueeze(3)


def of(found: Labellings, form: Literal["foretold", "drawn"]) -> list[list[int]]:
    """The first row of all labellings."""
    return [getattr(found, form)(number)[0, 0].tolist() for number in range(labelling_count(found.raters))]


def offsets(of_raters: list[float]) -> torch.Tensor:
    """Of raters from where all draw in the middle, and so from any labelling's borders."""
    from_middle = torch.tensor(of_raters)
    from_raters = from_middle - from_middle.nan_to_num(posinf=0.0).unsqueeze(1)
    together, borders = from_middle.expand(len(TOGETHER), -1), from_middle + torch.tensor(SHIFTS).unsqueeze(1)
    return torch.cat([from_raters, together, borders]).unsqueeze(2)


NOBODY_IS_OFF = offsets([0.0, 0.0, 0.0])


def test_foretold_are_each_raters_own_their_mean_their_vote_their_fusion_and_the_networks():
    drawings = chances([[0.9, 0.6, 0.1], [0.6, 0.1, 0.1], [0.1, 0.9, 0.6]])
    log_truth = torch.tensor([[[[0.9, 0.2, 0.9]], [[0.1, 0.8, 0.1]]]]).log()
    nothing = torch.full((1, 3, 1, 3), 255, dtype=torch.uint8)
    third_is_right = torch.tensor([[[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]], [[0.99, 0.01], [0.01, 0.99]]])
    found = Labellings(drawings, nothing, log_truth, third_is_right.log(), NOBODY_IS_OFF)
    foretold, drawn = of(found, "foretold"), of(found, "drawn")
    assert foretold[:3] == [[1, 1, 0], [1, 0, 0], [0, 1, 1]]
    assert foretold[3:7] == [[1, 1, 0], [1, 1, 0], [0, 1, 1], [0, 1, 0]]
    assert np.all(np.array(drawn) == 255)


def test_drawn_are_raters_own_and_what_two_or_more_say():
    labels = torch.tensor([[1, 0, 1], [1, 1, 255], [0, 255, 255]], dtype=torch.uint8).view(1, 3, 1, 3)
    likely = chances([[0.9] * 3] * 3)  # decides the tie
    confusion = torch.tensor([[0.6, 0.4], [0.4, 0.6]]).expand(3, 2, 2).log()
    found = of(Labellings(likely, labels, likely[:, 0], confusion, NOBODY_IS_OFF), "drawn")
    assert found[:3] == [[1, 0, 1], [1, 1, 255], [0, 255, 255]]
    assert found[3:7] == [[255] * 3, [1, 1, 255], [1, 1, 255], [255] * 3]


def test_everybodys_borders_are_the_truth_where_it_is_known_how_much_too_large_each_draws():
    truth = torch.zeros(1, 12, 12, dtype=torch.uint8)
    truth[0, 4:8, 3:9] = 1
    large, small = torch.zeros_like(truth), torch.zeros_like(truth)
    large[0, 3:9, 2:10] = small[0, 5:7, 4:8] = 1
    labels = torch.stack([large, small, large], dim=1)
    even = torch.zeros(1, 3, 2, 12, 12).log_softmax(dim=2)
    matrices = torch.zeros(3, 2, 2)
    known = Labellings(even, labels, even[:, 0], matrices, offsets([-1.0, 1.0, -1.0]))
    middle = 3 + len(TOGETHER) + SHIFTS.index(0.0)
    corners = (known.drawn(middle) != truth).sum()  # of an eroded or dilated square, distances to corners differ
    assert corners <= 4
    larger = known.drawn(middle + 2)  # a pixel farther out
    assert (larger >= truth).all()
    assert larger.sum() > truth.sum()


def test_what_one_rater_did_not_draw_follows_from_others_who_draw_larger_or_smaller():
    truth = torch.zeros(1, 12, 12, dtype=torch.uint8)
    truth[0, 4:8, 3:9] = 1
    large, small = torch.zeros_like(truth), torch.zeros_like(truth)
    large[0, 3:9, 2:10] = small[0, 5:7, 4:8] = 1
    nothing = torch.full_like(truth, 255)
    even = torch.zeros(1, 3, 2, 12, 12).log_softmax(dim=2)
    arguments = even, torch.stack([nothing, small, large], dim=1), even[:, 0], torch.zeros(3, 2, 2)
    found = Labellings(*arguments, offsets([0.0, 1.0, -1.0]))
    assert (found.by_others(0) != truth).sum() <= 4  # corners
    assert found.by_others(2)[0, 4:8, 3:9].all()
    assert (found.by_others(2) > 0).sum() > truth.sum()
    assert (found.by_others(4) == 255).all()  # of the vote of two, the vote tells
    left_out = Labellings(*arguments, offsets([0.0, torch.inf, torch.inf]))
    assert (left_out.by_others(0) == 255).all()


def test_of_drawings_of_an_item_only_those_count_that_are_like_what_is_foretold():
    truth = torch.zeros(1, 10, 10, dtype=torch.uint8)
    truth[0, 2:6, 2:8] = 1
    elsewhere = truth.roll(4, dims=1)
    foretold = torch.stack([1 - truth.float(), truth.float()], dim=1).clamp(0.01, 0.99).log().unsqueeze(1)
    labels = torch.stack([torch.full_like(truth, 255), truth, elsewhere], dim=1)
    found = Labellings(foretold.expand(1, 3, 2, 10, 10), labels, foretold[:, 0], torch.zeros(3, 2, 2), NOBODY_IS_OFF)
    assert torch.equal(found.by_others(0), truth)


def test_one_label_of_an_item_tells_what_all_would_have_said_once_it_is_moved():
    truth = torch.zeros(1, 12, 12, dtype=torch.uint8)
    truth[0, 4:8, 3:9] = 1
    large = torch.zeros_like(truth)
    large[0, 3:9, 2:10] = 1
    labels = torch.stack([torch.full_like(truth, 255), large], dim=1)
    even = torch.zeros(1, 2, 2, 12, 12).log_softmax(dim=2)
    found = Labellings(even, labels, even[:, 0], torch.zeros(2, 2, 2), offsets([0.0, -1.0]))
    vote = 2 + TOGETHER.index(VOTE)
    assert (found.drawn(vote) == 255).all()
    assert (found.by_others(vote) != truth).sum() <= 4  # corners


@pytest.mark.filterwarnings("ignore:The estimated truth may be wrong")
def test_the_fused_labelling_is_dawid_and_skenes():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, (4, 1, 12, 12))
    right = rng.random((4, 5, 12, 12)) < np.array([0.9, 0.8, 0.7, 0.5, 0.4])[:, None, None]
    masks = np.where(right, truth, (truth + rng.integers(1, 3, right.shape)) % 3).astype(np.uint8)
    log_confusion = torch.from_numpy(fused_confusion(list(masks), 5, 3)).float()
    even = torch.full((4, 5, 3, 12, 12), 1 / 3).log()
    found = Labellings(even, torch.from_numpy(masks), even[:, 0], log_confusion, torch.zeros(labelling_count(5), 5, 2))
    drawn = found.drawn(5 + TOGETHER.index(FUSED))
    fused = np.stack(DawidSkene().fit(Annotations.from_masks(masks, classes=3)).predict())
    assert (drawn.numpy() == fused).mean() > 0.98  # but for the classes' frequencies


def test_one_label_of_each_item_still_gives_matrices():
    masks = np.full((6, 3, 4, 4), 255, dtype=np.uint8)
    for item in range(6):
        masks[item, item % 3] = item % 2
    assert np.isfinite(fused_confusion(list(masks), 3, 2)).all()
