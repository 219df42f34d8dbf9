"""Whose drawings are taken for true."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from annotruth.methods import Batch, DataSpec, make_method
from annotruth.methods.anchor import FORETELLING
from annotruth.methods.anchor.choice import (
    BEYOND_CHANCE,
    ENOUGH_ITEMS,
    MOST_ITEMS,
    _enough,
    _lengths_with_shades,
    _not_beaten,
    _on_edges,
    _rival,
)
from annotruth.methods.anchor.comparing import DRAWN, Told
from annotruth.methods.anchor.labellings import labelling_name
from annotruth.methods.anchor.model import UNDECIDED
from annotruth.metrics.edges import edge_information
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
    seen = truth[:, None] + 0.2 * torch.randn(24, 1, 20, 20, generator=generator)
    blind = torch.zeros(24, 1, 20, 20)
    by_seen, by_blind = (
        [edge_information([each.numpy()], [images.numpy()], classes=2) for each in labels.unbind(dim=1)]
        for images in (seen, blind)
    )
    assert _on_edges(range(4), by_seen, raters=4) == [3]
    assert _on_edges(range(4), by_blind, raters=4) == [0, 1, 2, 3]


def test_borders_beyond_everybodys_must_lie_on_edges_clearly():
    shown = [0.4, 0.5, 0.1, 0.1, 0.1, 0.1, 0.52, 0.6]  # of two raters, all of them together, and moved borders
    assert _on_edges([0, 1, 6, 7], shown, raters=2) == [1, 6, 7]
    assert _on_edges([0, 1, 6, 7], shown, raters=2, beyond=[6, 7]) == [1, 7]
    blind = [0.01] * 8
    assert _on_edges([0, 1, 6, 7], blind, raters=2, beyond=[6, 7]) == [0, 1]


def test_borders_that_nobody_drew_are_not_taken_where_all_draw_alike():
    """Of smooth objects, borders farther in or out may take a shorter message though all agree where they are."""
    generator = torch.Generator().manual_seed(1)
    rows, columns = torch.meshgrid(torch.arange(40), torch.arange(40), indexing="ij")
    centres, radii = (
        torch.randint(14, 26, (16, 2), generator=generator),
        torch.randint(7, 11, (16,), generator=generator),
    )
    far = torch.stack([((rows - y) ** 2 + (columns - x) ** 2).sqrt() - r for (y, x), r in zip(centres, radii)])
    jitter = torch.nn.functional.avg_pool2d(torch.randn(16, 3, 40, 40, generator=generator), 5, 1, 2) * 2.5
    labels = (far[:, None] + jitter < 0).to(torch.uint8)
    images = torch.sigmoid(-far / 3)[:, None] + 0.3 * torch.randn(16, 1, 40, 40, generator=generator)
    method = make_method("pixel-cm", "masks")
    model = method.build(DataSpec(channels=1, raters=3, classes=2, dims=2))
    model.annotators.foretell = lambda images: (
        torch.stack([far, -far], dim=1)[:, None].expand(-1, 3, -1, -1, -1).log_softmax(2),
        images,
    )
    with torch.no_grad():
        method.stages.begin_epoch(model, [Batch(images, labels)], FORETELLING)
    names = [labelling_name(number, "abc") for number in range(len(model.lengths))]
    assert "pixels farther" in names[int(model.lengths.argmin())]
    assert "pixels farther" not in names[int(model.anchor)]


def test_who_draws_too_little_of_what_is_bright_is_refused_though_borders_lie_within_it():
    """Labels alone are told as shortly by either; shades are not."""
    images, truth, _ = noisy_digits(40, seed=1)
    truth, images = torch.from_numpy(truth), torch.from_numpy(images)
    thin = (-torch.nn.functional.max_pool2d(-truth[:, None].float(), 2, 1, 1))[:, 0, :-1, :-1].to(torch.uint8)
    batches = [Batch(images, torch.stack([thin, truth], dim=1))]
    told = [
        Told(np.zeros(40), list(each.numpy()), np.full(40, DRAWN)) for each in (thin, truth, truth, truth, truth, truth)
    ]
    drawn = [[np.stack(each.labelling)] for each in told]
    by_shades, by_nothing = (
        _lengths_with_shades([0, 1], told, drawn, batches, [of], classes=2)
        for of in (images.numpy(), np.zeros(images.shape))
    )
    assert _not_beaten(by_shades, BEYOND_CHANCE) == [1]
    assert _not_beaten(by_nothing, BEYOND_CHANCE) == [0, 1]


def test_what_speaks_against_the_choice_is_found():
    told = [Told(np.full(3, nats), [], np.full(3, DRAWN)) for nats in (9.0, 5.0, 8.0, 8.0, 8.0, 7.0)]
    assert _rival(0, told, [0.3, 0.2, 0.1, 0.1, 0.1, 0.2], raters=2) == UNDECIDED  # is shown best
    assert _rival(0, told, [0.3, 0.2, 0.1, 0.1, 0.6, 0.2], raters=2) == 4
    assert _rival(0, told, [0.01, 0.02, 0.0, 0.0, 0.04, 0.0], raters=2) == UNDECIDED  # images say nothing
    assert _rival(5, told, [0.3] * 6, raters=2) == 1  # labels at their word, for want of a better one
    assert _rival(5, told[:1] + told[2:3] + told[2:], [0.3] * 6, raters=2) == UNDECIDED


def test_what_speaks_against_the_choice_is_named():
    method = make_method("pixel-cm", "masks")
    model = method.build(DataSpec(channels=1, raters=2, classes=2, dims=2))
    assert method.doubts(model, ["ann", "bob"]) == []
    model.anchor.fill_(0)
    model.rival.fill_(1)
    model.lengths.fill_(7.0)
    (said,) = method.doubts(model, ["ann", "bob"])
    assert "it follows ann's drawings, but edges of the images lie along the borders of bob's drawings" in said
    model.lengths[1] = 5.0
    (said,) = method.doubts(model, ["ann", "bob"])
    assert "all labels are likelier by bob's drawings" in said


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
