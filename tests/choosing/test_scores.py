"""Predictions of held-out items are scored by everybody's labels, by each other, and by known truth."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth import Annotations
from annotruth.choosing.scores import KnownTruth, agreement, answer_lengths, swaps_classes, told_lengths
from annotruth.errors import InputError
from annotruth.simulate import noisy_digits, simulate_masks


def slow_answer_lengths(predicted: np.ndarray, matrix: np.ndarray, classes: int) -> np.ndarray:
    """The same, item by item, with tables counted anew each time."""
    lengths = np.zeros(len(matrix))
    for item, row in enumerate(matrix):
        others = [i for i in range(len(matrix)) if i != item and predicted[i] == predicted[item]]
        everybody = np.full(classes, 0.5)
        for i in others:
            for said in matrix[i][matrix[i] >= 0]:
                everybody[said] += 1
        everybody /= everybody.sum()
        for rater, said in enumerate(row):
            if said >= 0:
                own = 0.5 * classes * everybody
                for i in others:
                    if matrix[i, rater] >= 0:
                        own[matrix[i, rater]] += 1
                lengths[item] -= np.log(own[said] / own.sum())
    return lengths


def test_answers_are_told_by_tables_counted_on_all_other_items():
    rng = np.random.default_rng(0)
    matrix = rng.integers(-1, 3, (30, 4))
    matrix[7] = -1
    predicted = rng.integers(0, 3, 30)
    found = answer_lengths(predicted, Annotations.from_answers(matrix, classes=3).answers, 3)
    np.testing.assert_allclose(found, slow_answer_lengths(predicted, matrix, 3), rtol=1e-12)
    assert found[7] == 0


def test_raters_who_answer_once_are_told_by_what_others_answer():
    truth = np.array([0, 1] * 20)
    matrix = np.full((40, 40), -1)
    matrix[np.arange(40), np.arange(40)] = truth
    answers = Annotations.from_answers(matrix).answers
    right, constant = (answer_lengths(guess, answers, 2).sum() for guess in (truth, 0 * truth))
    assert right < constant / 3


def test_a_bad_prediction_of_masks_leaves_more_to_tell():
    _, truth, _ = noisy_digits(12)
    ann = simulate_masks(truth).annotations()
    shifted = np.roll(truth, 5, axis=2)
    right, bad, nothing = (told_lengths(ann, list(one)).sum() for one in (truth, shifted, 0 * truth))
    assert right < bad
    assert right < nothing


def test_many_classes_do_not_overflow_small_integers():
    masks = np.zeros((3, 2, 4, 4), dtype=np.uint8)
    masks[:, :, 1:3] = 199
    ann = Annotations.from_masks(masks, classes=200)
    right, nothing = (told_lengths(ann, list(one)).sum() for one in (masks[:, 0], 0 * masks[:, 0]))
    assert right < nothing


def test_agreement_of_masks_is_their_mean_dice_over_pairs_of_seeds():
    ann = Annotations.from_masks(np.zeros((1, 2, 1, 4), dtype=np.uint8), classes=2)
    seeds = [[np.array([[0, 1, 1, 0]])], [np.array([[0, 1, 0, 0]])], [np.array([[0, 1, 1, 0]])]]
    np.testing.assert_allclose(agreement(ann, seeds), [(2 / 3 + 2 / 3 + 1) / 3])
    assert agreement(ann, seeds[:1]) is None


def test_known_truth_scores_only_items_where_it_is_known():
    masks = np.ones((3, 2, 1, 2), dtype=np.uint8)
    truth = np.array([[[0, 1]], [[255, 255]], [[255, 1]]], dtype=np.uint8)
    known = KnownTruth(Annotations.from_masks(masks, truth=truth), None)
    np.testing.assert_allclose(known.scores(list(masks[:, 0])), [2 / 3, np.nan, 1])
    table = Annotations.from_answers(np.array([[0, 1], [1, 1], [0, 0]]), items=["a", "b", "c"])
    np.testing.assert_array_equal(KnownTruth(table, {"c": "0", "b": "0"}).scores([0, 1, 0]), [np.nan, 0, 1])
    assert np.isnan(KnownTruth(table, None).scores([0, 1, 0])).all()


def test_gold_that_tells_nothing_or_does_not_fit_is_refused():
    ann = Annotations.from_masks(np.zeros((2, 2, 4, 4), dtype=np.uint8))
    with pytest.raises(InputError, match="truth of no item"):
        KnownTruth(ann, np.full((2, 4, 4), 255, dtype=np.uint8))
    with pytest.raises(InputError, match="item_1, gold"):
        KnownTruth(ann, {"item_1": np.zeros((5, 5), dtype=np.uint8)})


def test_swapped_classes_are_told_as_short_and_so_are_looked_for():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 60)
    matrix = np.stack([np.where(rng.random(60) < 0.2, rng.integers(0, 3, 60), truth) for _ in range(3)], axis=1)
    ann, turned = Annotations.from_answers(matrix), (truth + 1) % 3
    np.testing.assert_allclose(told_lengths(ann, list(truth)), told_lengths(ann, list(turned)))
    assert not swaps_classes(ann, list(truth))
    assert swaps_classes(ann, list(turned))


def test_raters_who_draw_little_do_not_make_true_masks_look_swapped():
    _, truth, _ = noisy_digits(8)
    ann = simulate_masks(truth, ["good", "blank", "blank", "blank"]).annotations()
    assert not swaps_classes(ann, list(truth))
    assert not swaps_classes(ann, list(0 * truth))
    assert swaps_classes(ann, list(1 - truth))
