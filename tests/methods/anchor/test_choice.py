"""Whose drawings are taken for true."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from annotruth.methods import Batch, DataSpec, make_method
from annotruth.methods.anchor import FORETELLING
from annotruth.methods.anchor.choice import ENOUGH_ITEMS, MOST_ITEMS, _borne_out, _enough, _on_edges
from annotruth.methods.anchor.comparing import DRAWN, Told
from annotruth.methods.anchor.model import UNDECIDED
from annotruth.simulate import noisy_digits, simulate_masks


def test_one_who_draws_the_truth_is_believed_before_the_images_say_anything():
    """Others' drawings follow from hers, hers not from theirs: no network that has learnt is needed for that."""
    _, truth, _ = noisy_digits(24, seed=3)
    labels = simulate_masks(truth, ["over", "over", "wrong", "good", "under"], seed=3).annotations()
    drawn = torch.stack([torch.from_numpy(labels.item_masks(index).copy()) for index in range(len(labels))])
    method = make_method("pixel-cm", "masks")
    model = method.build(DataSpec(channels=1, raters=5, classes=2, dims=2))
    with torch.no_grad():
        method.stages.begin_epoch(model, [Batch(torch.rand(24, 1, 28, 28), drawn)], FORETELLING)
    assert int(model.anchor) == 3


def test_many_who_draw_too_much_are_refused_where_the_image_shows_borders():
    """Three draw a pixel too much, one the truth; without an image nobody can tell."""
    generator = torch.Generator().manual_seed(0)
    truth = torch.zeros(24, 20, 20, dtype=torch.uint8)
    for item, (top, left, side) in enumerate(torch.randint(4, 9, (24, 3), generator=generator)):
        truth[item, top : top + side, left : left + side] = 1
    larger = torch.nn.functional.max_pool2d(truth[:, None].float(), 3, stride=1, padding=1)[:, 0].to(torch.uint8)
    labels = torch.stack([larger, larger, larger, truth], dim=1)
    labellings = {number: [each] for number, each in enumerate(labels.unbind(dim=1))}
    seen = [truth[:, None] + 0.2 * torch.randn(24, 1, 20, 20, generator=generator)]
    blind = [torch.zeros(24, 1, 20, 20)]
    assert _on_edges(labellings, seen, given=range(4), classes=2) == [3]
    assert _on_edges(labellings, blind, given=range(4), classes=2) == [0, 1, 2, 3]


def test_who_draws_too_little_of_what_is_bright_is_refused_though_borders_lie_within_it():
    """Labels alone are told as shortly by either; shades are not."""
    images, truth, _ = noisy_digits(40, seed=1)
    truth, images = torch.from_numpy(truth), torch.from_numpy(images)
    thin = (-torch.nn.functional.max_pool2d(-truth[:, None].float(), 2, 1, 1))[:, 0, :-1, :-1].to(torch.uint8)
    batches = [Batch(images, torch.stack([thin, truth], dim=1))]
    told = [
        Told(np.zeros(40), list(each.numpy()), np.full(40, DRAWN)) for each in (thin, truth, truth, truth, truth, truth)
    ]
    assert _borne_out([0, 1], told, batches, raters=2, classes=2) == [1]
    blank = [Batch(torch.zeros_like(images), batches[0].labels)]
    assert _borne_out([0, 1], told, blank, raters=2, classes=2) == [0, 1]


def test_a_labelling_that_was_refused_and_tells_labels_more_shortly_is_named():
    method = make_method("pixel-cm", "masks")
    model = method.build(DataSpec(channels=1, raters=2, classes=2, dims=2))
    assert method.doubts(model, ["ann", "bob"]) == []
    model.anchor.fill_(0)
    model.rival.fill_(1)
    (said,) = method.doubts(model, ["ann", "bob"])
    assert "ann's drawings" in said
    assert "bob's drawings" in said


@pytest.mark.parametrize("name", ["pixel-cm", "global-cm"])
def test_one_rater_is_believed_or_taken_at_their_word(name):
    method = make_method(name, "masks")
    model = method.build(DataSpec(channels=1, raters=1, classes=2, dims=2))
    images = torch.rand(6, 1, 16, 16)
    with torch.no_grad():
        method.stages.begin_epoch(model, [Batch(images, (images > 0.5).to(torch.uint8))], FORETELLING)
    assert int(model.anchor) != UNDECIDED


def test_labellings_are_compared_on_fewer_items_where_images_are_large():
    small, large = ([Batch(torch.zeros(2, 1, side, 8), torch.zeros(2, 3, side, 8))] * MOST_ITEMS for side in (8, 2**14))
    assert sum(len(batch.labels) for batch in _enough(small, bytes_of_pixel=100)) == MOST_ITEMS
    assert sum(len(batch.labels) for batch in _enough(large, bytes_of_pixel=1000)) == ENOUGH_ITEMS
