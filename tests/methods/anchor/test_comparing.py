"""How labellings are compared that may be the truth."""

from __future__ import annotations

import numpy as np

from annotruth.methods.anchor.comparing import (
    DRAWN,
    FORETOLD,
    OTHERS,
    labelling_overlap,
    mean_overlap,
    names_classes_alike,
    separating_threshold,
    tell_all_labels,
)
from annotruth.methods.anchor.foretelling import message_lengths
from annotruth.simulate import noisy_digits, simulate_masks


def crowd(items: int = 12) -> tuple[np.ndarray, list[np.ndarray]]:
    _, truth, _ = noisy_digits(items, seed=2)
    return truth.astype(np.uint8), list(simulate_masks(truth, ["good", "over", "under"], seed=2).masks)


def unknown(truth: np.ndarray) -> list[np.ndarray]:
    return [np.full_like(item, 255) for item in truth]


def test_a_rater_is_told_by_what_is_foretold_of_them_and_the_others_by_them():
    truth, labels = crowd()
    drawn = [item[0] for item in labels]
    found = tell_all_labels(list(truth), drawn, unknown(truth), labels, classes=2, rater=0)
    itself = message_lengths(list(truth), [item[:1] for item in labels], 2)
    others = message_lengths(drawn, [item[1:] for item in labels], 2)
    which = -np.log(12.5 / 13)  # of two forms always the same one
    np.testing.assert_allclose(found.lengths, itself + others + which)
    np.testing.assert_array_equal(np.stack(found.labelling), truth)
    assert (found.forms == DRAWN).all()


def test_what_nobody_drew_is_told_as_foretold():
    truth, labels = crowd()
    found = tell_all_labels(list(truth), unknown(truth), unknown(truth), labels, classes=2)
    np.testing.assert_allclose(found.lengths, message_lengths(list(truth), labels, 2))
    assert (found.forms == FORETOLD).all()


def test_a_slip_is_told_by_the_others_drawings_where_these_are_more_exact_than_what_is_foretold():
    truth, labels = crowd(20)
    drawn = [item[0].copy() for item in labels]
    for item, drew in zip(labels[:3], drawn):
        item[0] = drew[:] = 0
    rough = [np.where(np.roll(item, 1, axis=0) > 0, 1, item) for item in truth]
    found = tell_all_labels(rough, drawn, list(truth), labels, classes=2, rater=0)
    assert found.forms.tolist() == [OTHERS] * 3 + [DRAWN] * 17
    np.testing.assert_array_equal(np.stack(found.labelling), truth)


def test_mean_overlap_leaves_out_what_was_not_labelled():
    labels = [np.array([[0, 1, 255, 1]]), np.array([[255, 255, 255, 255]])]
    assert mean_overlap([np.array([0, 1, 1, 0]), np.array([1, 1, 1, 1])], labels, classes=2) == 2 / 3


def test_a_labelling_with_classes_that_changed_places_is_as_short_but_named_otherwise():
    rng = np.random.default_rng(0)
    truth = np.kron(rng.integers(0, 3, (8, 3, 3)), np.ones((1, 5, 5), dtype=int))
    labels = [np.where(rng.random((3, 15, 15)) < 0.9, item, rng.integers(0, 3, (3, 15, 15))) for item in truth]
    swapped = np.array([0, 2, 1])[truth]
    lengths = [message_lengths(list(each), labels, 3).sum() for each in (truth, swapped)]
    np.testing.assert_allclose(*lengths, rtol=0.01)  # but for places as far from two classes
    assert names_classes_alike(list(truth), labels, 3)
    assert not names_classes_alike(list(swapped), labels, 3)


def test_names_need_not_be_right_where_somebody_sees_nothing():
    truth, labels = crowd()
    blank = [np.concatenate([item, np.zeros_like(item)]) for item in labels]
    assert names_classes_alike(list(truth), blank, 2)


def test_overlap_is_dice_of_all_pixels_and_one_where_neither_has_a_class():
    one, other = [np.array([0, 1, 1, 1])], [np.array([0, 0, 1, 1])]
    assert labelling_overlap(one, other, classes=2) == 4 / 5
    assert labelling_overlap([np.zeros(3)], [np.zeros(3)], classes=2) == 1


def test_the_threshold_lets_as_few_be_misjudged_as_can_be():
    values = np.array([0.1, 0.4, 0.5, 0.6, 0.9])
    assert separating_threshold(values, np.array([True, True, False, True, False])) in (0.5, 0.9)
    assert separating_threshold(values, np.zeros(5, dtype=bool)) == 0.0
