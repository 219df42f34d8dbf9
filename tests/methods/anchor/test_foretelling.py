"""Which labelling foretells everybody's labels best: tables against brute force, and who must be chosen."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from annotruth.methods.anchor.foretelling import (
    LEVELS,
    STEPS,
    UNSEEN,
    Form,
    first_is_shorter,
    message_lengths,
    shortest_messages,
    surroundings,
)
from annotruth.simulate import noisy_digits, simulate_masks


def by_hand(labelling, classes):
    """Class, class beyond the nearest border and distance to it, pixel by pixel."""
    where = list(np.ndindex(labelling.shape))
    codes = np.zeros(labelling.shape, dtype=int)
    for pixel in where:
        others = [
            (np.hypot(*np.subtract(pixel, other)), labelling[other])
            for other in where
            if labelling[other] != labelling[pixel]
        ]
        distance, beyond = min(others) if others else (np.inf, 0)
        step = int(min(np.ceil((distance - 1) * STEPS), LEVELS - 1))
        codes[pixel] = (labelling[pixel] * classes + beyond) * LEVELS + step
    return codes


def test_surroundings_against_a_search_over_all_pixels():
    rng = np.random.default_rng(0)
    for classes in (2, 3):
        labelling = ndimage.zoom(rng.integers(0, classes, (4, 4)), 3, order=0)
        np.testing.assert_array_equal(surroundings(labelling, classes), by_hand(labelling, classes))


def test_a_labelling_of_one_class_has_no_border():
    codes = surroundings(np.ones((3, 3), dtype=int), classes=2)
    assert len(np.unique(codes)) == 1
    assert codes[0, 0] % LEVELS == LEVELS - 1


def test_messages_against_tables_counted_on_the_other_items():
    rng = np.random.default_rng(1)
    labellings = [rng.integers(0, 2, (6, 6)) for _ in range(3)]
    labels = [rng.choice([0, 1, 255], (2, 6, 6), p=[0.5, 0.4, 0.1]).astype(np.uint8) for _ in range(3)]
    found = message_lengths(labellings, labels, classes=2)
    for item in range(3):
        length = 0.0
        for rater in range(2):
            table = np.full((4 * LEVELS, 2), UNSEEN)
            for other in {0, 1, 2} - {item}:
                for code, said in zip(surroundings(labellings[other], 2).ravel(), labels[other][rater].ravel()):
                    if said != 255:
                        table[code, said] += 1
            for code, said in zip(surroundings(labellings[item], 2).ravel(), labels[item][rater].ravel()):
                length -= np.log(table[code, said] / table[code].sum()) if said != 255 else 0.0
        assert found[item] == pytest.approx(length)


@pytest.mark.parametrize("crowd", [("over", "over", "wrong", "good", "under"), ("blank", "blank", "good", "under")])
def test_the_truth_tells_what_all_drew_in_fewer_words_than_those_who_outvote_it(crowd):
    _, truth, _ = noisy_digits(30, seed=3)
    masks = simulate_masks(truth, list(crowd), seed=3).masks
    labels = list(masks)
    by_truth = message_lengths(list(truth.astype(int)), labels, classes=2)
    for rater in (0, len(crowd) - 1):
        assert first_is_shorter(by_truth, message_lengths(list(masks[:, rater].astype(int)), labels, classes=2))


def test_nothing_is_shorter_beyond_chance_on_one_item():
    assert not first_is_shorter(np.array([1.0]), np.array([9.0]))


def test_labels_of_nobody_need_not_be_told():
    nobody = [np.empty((0, 3, 3), dtype=np.uint8)] * 2
    assert message_lengths([np.zeros((3, 3), dtype=int)] * 2, nobody, classes=2).tolist() == [0, 0]


def test_slips_of_one_who_is_right_elsewhere_are_found_and_cost_no_more_than_what_is_foretold():
    _, truth, _ = noisy_digits(30, seed=4)
    truth = truth.astype(int)
    labels = list(simulate_masks(truth.astype(np.uint8), ["over", "under", "over", "good"], seed=4).masks)
    slipped = truth.copy()
    slipped[:3] = 0
    border = (truth == 1) & ~np.stack([ndimage.binary_erosion(item) for item in truth])
    missed = border & (np.random.default_rng(4).random(truth.shape) < 0.1)
    foretold = list(np.where(missed, 0, truth))  # no slip, but not as exact
    free = np.zeros(30)
    told, form = shortest_messages([Form(list(slipped), labels, free), Form(foretold, labels, free)], classes=2)
    assert form.tolist() == [1] * 3 + [0] * 27
    assert told.sum() < message_lengths(list(slipped), labels, classes=2).sum()
    assert told.sum() < message_lengths(foretold, labels, classes=2).sum()


def test_a_form_costs_what_it_takes_to_tell_it_and_which_it_is():
    _, truth, _ = noisy_digits(6, seed=5)
    labels = list(simulate_masks(truth, ["over", "under"], seed=5).masks)
    truth = list(truth.astype(int))
    cost = np.array([1.0, 2.0, 3.0, np.inf, np.inf, np.inf])
    told, form = shortest_messages([Form(truth, labels, cost), Form(truth, labels, np.full(6, 2.5))], classes=2)
    assert form.tolist() == [0, 0, 1, 1, 1, 1]
    which = -np.log((np.array([2, 2, 1]) + UNSEEN) / (3 + 2 * UNSEEN))  # where there is but one form, nothing is told
    added = np.array([1, 2, 2.5, 2.5, 2.5, 2.5]) + np.append(which, [0, 0, 0])
    np.testing.assert_allclose(told, message_lengths(truth, labels, classes=2) + added)
