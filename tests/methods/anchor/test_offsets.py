"""Distances from borders, raters' offsets, and where everybody's border lies without them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import ndimage

from annotruth.methods.anchor.foretelling import message_lengths
from annotruth.methods.anchor.offsets import (
    REACH,
    SHIFTS,
    border_distances,
    drawn_distances,
    in_the_middle,
    rater_offsets,
    within,
)
from annotruth.metrics import dice
from annotruth.simulate import MaskRater, noisy_digits, simulate_masks


@pytest.mark.parametrize("size", [(19, 14), (11, 9, 12)])
def test_distances_against_scipys_within_reach(size):
    rng = np.random.default_rng(0)
    labels = (ndimage.gaussian_filter(rng.standard_normal((3, *size)), (0, *[1.5] * len(size))) > 0.1).astype(np.uint8)
    labels += labels * (rng.random(labels.shape) < 0.3).astype(np.uint8)
    found = border_distances(torch.from_numpy(labels), classes=3).numpy()
    for item, mask in enumerate(labels):
        for number in (1, 2):
            inside, outside = (ndimage.distance_transform_edt(each) for each in (mask == number, mask != number))
            expected = np.where(mask == number, 0.5 - inside, outside - 0.5).clip(-REACH, REACH)
            np.testing.assert_allclose(found[item, number - 1], expected, atol=1e-5)


def test_offsets_are_those_by_which_raters_were_made_to_err():
    _, truth, _ = noisy_digits(40, seed=1)
    labels = torch.from_numpy(simulate_masks(truth, ["good", "over", "under", "blank"], seed=1).masks)
    good, over, under, blank = rater_offsets([labels], [torch.from_numpy(truth.astype(np.uint8))], 2)[:, 0].tolist()
    assert good == pytest.approx(0, abs=0.01)
    assert over == pytest.approx(-2, abs=0.4)
    assert under == pytest.approx(1.5, abs=0.5)
    assert np.isinf(blank)  # has no border anywhere


def test_a_rater_who_takes_one_class_for_another_now_and_then_is_as_far_off_as_on_other_items():
    truth = torch.zeros(9, 30, 30, dtype=torch.uint8)
    truth[:, 3:13, 4:14], truth[:, 17:27, 15:25] = 1, 2
    large = torch.zeros_like(truth)
    large[:, 2:14, 3:15], large[:, 16:28, 14:26] = 1, 2
    swapped = torch.tensor([0, 2, 1], dtype=torch.uint8)[large.long()]
    now_and_then = torch.where(torch.arange(9).view(-1, 1, 1) < 4, swapped, large)
    mostly = torch.where(torch.arange(9).view(-1, 1, 1) < 6, swapped, large)
    found = rater_offsets([torch.stack([large, now_and_then, mostly], dim=1)], [truth], classes=3)
    np.testing.assert_allclose(found[1], found[0], atol=0.1)
    assert torch.isinf(found[2]).all()


def test_what_is_in_the_middle_leaves_out_what_is_not_known():
    labels = torch.tensor([[[0, 0, 1, 1, 255], [0, 1, 1, 1, 255], [255] * 5]], dtype=torch.uint8)
    distances = drawn_distances(labels, classes=2)
    assert distances[0, 2].isnan().all()
    assert within(in_the_middle(distances[:, :1]))[0].tolist() == [0, 0, 1, 1, 255]
    middle = in_the_middle(distances)
    np.testing.assert_allclose(middle[0, 0, :4], distances[0, :2, 0, :4].mean(dim=0))
    assert within(middle)[0].tolist() == [0, 0, 1, 1, 255]


def test_of_borders_moved_outwards_or_inwards_the_true_ones_foretell_all_drawings_best_though_nobody_drew_them():
    """Four who draw too much, each in their own way, and one too little: the vote is far too large."""
    _, truth, _ = noisy_digits(40, seed=6)
    crowd = [MaskRater("over", strength, name=str(strength)) for strength in (0.6, 0.61, 0.8, 1.2)]
    masks = simulate_masks(truth, [*crowd, "under"], seed=6).masks
    labels = torch.from_numpy(masks)
    vote = (labels.sum(dim=1) > 2).to(torch.uint8)
    offsets = rater_offsets([labels], [vote], classes=2)
    distances = in_the_middle(drawn_distances(labels, classes=2) - offsets.view(5, 1, 1, 1))
    moved = {shift: within(distances - shift).numpy().astype(int) for shift in SHIFTS}
    lengths = {shift: message_lengths(list(each), list(masks), classes=2).sum() for shift, each in moved.items()}
    best = min(lengths, key=lengths.__getitem__)
    assert dice(moved[best], truth) > 0.93  # the best of the raters has 0.76
