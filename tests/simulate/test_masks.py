"""Simulated masks: their confusion is what was counted, few are kept, and what is unknown stays so."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix as sklearn_confusion

from annotruth.errors import InputError
from annotruth.simulate import MaskRater, noisy_digits, simulate_masks


@pytest.mark.parametrize(("shape", "n_classes"), [((20, 22), 2), ((20, 22), 4), ((8, 9, 10), 3)])
def test_confusion_is_what_scikit_learn_counts(random_truth, shape, n_classes):
    truth = random_truth(7, items=3, shape=shape, n_classes=n_classes)
    simulation = simulate_masks(truth, n_classes=n_classes)
    labels = list(range(n_classes))
    for rater in range(5):
        masks = simulation.masks[:, rater]
        expected = sklearn_confusion(truth.ravel(), masks.ravel(), labels=labels, normalize="true")
        np.testing.assert_allclose(simulation.confusion[rater], expected)
        expected = sklearn_confusion(truth[1].ravel(), masks[1].ravel(), labels=labels, normalize="true")
        there = ~np.isnan(simulation.confusion_per_item[1, rater]).any(axis=1)
        assert set(labels) - set(np.unique(truth[1])) == set(np.flatnonzero(~there))
        np.testing.assert_allclose(simulation.confusion_per_item[1, rater][there], expected[there])
        np.testing.assert_allclose(simulation.confusion_per_item[1, rater][there].sum(axis=1), 1)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 5), st.integers(0, 1000))
def test_exactly_k_masks_are_kept_per_item_and_confusion_knows_the_others(random_truth, k, seed):
    truth = random_truth(seed, items=4)
    full, some = simulate_masks(truth, seed=seed), simulate_masks(truth, seed=seed, keep=k)
    given_masks = (some.masks != 255).any(axis=(2, 3))
    assert (given_masks.sum(axis=1) == k).all()
    np.testing.assert_array_equal(some.masks[given_masks], full.masks[given_masks])
    np.testing.assert_array_equal(some.confusion, full.confusion)
    np.testing.assert_array_equal(some.confusion_per_item, full.confusion_per_item)


def test_unknown_pixels_stay_unknown_and_are_no_border():
    truth = np.ones((1, 9, 9), dtype=np.uint8)
    truth[0, :, 5:] = 255
    simulation = simulate_masks(truth, ["over", "under", "wrong", "blank"])
    assert (simulation.masks[0, :, :, 5:] == 255).all()
    np.testing.assert_array_equal(simulation.masks[0, 1, :, :5], 1)  # nothing to shrink from


def test_an_item_does_not_depend_on_those_after_it_nor_a_rater_on_later_raters(random_truth):
    truth = random_truth(3, items=6)
    six, two = simulate_masks(truth, keep=2, seed=4), simulate_masks(truth[:2], keep=2, seed=4)
    np.testing.assert_array_equal(six.masks[:2], two.masks)
    first = simulate_masks(truth, ["over", "under"], seed=4).masks
    np.testing.assert_array_equal(first, simulate_masks(truth, ["over", "under", "wrong"], seed=4).masks[:, :2])
    assert (simulate_masks(truth, ["wrong"], seed=5).masks != simulate_masks(truth, ["wrong"], seed=6).masks).any()


def test_items_of_different_sizes(random_truth):
    truth = [random_truth(1, items=1)[0], random_truth(2, items=1, shape=(15, 31))[0]]
    simulation = simulate_masks(truth)
    assert [masks.shape for masks in simulation.masks] == [(5, 20, 22), (5, 15, 31)]
    annotations = simulation.annotations()
    assert annotations.raters == ("good", "over", "under", "wrong", "blank")
    np.testing.assert_array_equal(annotations.item_truth(1), truth[1])


def test_annotations_carry_truth_images_and_names():
    images, truth, _ = noisy_digits(6)
    annotations = simulate_masks(truth, {"ann": "good", "bob": "under"}, keep=1).annotations(
        images, classes=["paper", "ink"], items=list("abcdef")
    )
    assert annotations.raters == ("ann", "bob")
    assert annotations.classes == ("paper", "ink")
    np.testing.assert_array_equal(annotations.truth, truth)
    np.testing.assert_array_equal(annotations.images, images)
    assert (annotations.labelled().sum(axis=1) == 1).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"raters": ["godo"]}, "Known: good, over"),
        ({"raters": "good"}, "list of kinds"),
        ({"raters": ["good", MaskRater("over", name="good")]}, "named twice: good"),
        ({"strength": [1.0, 2.0]}, "5 raters but 2 strengths"),
        ({"strength": -1.0}, "0 or more"),
        ({"keep": 6}, "how many of the 5 raters"),
        ({"keep": 0}, "how many of the 5 raters"),
        ({"n_classes": 1}, "outside the classes"),
        ({"raters": [MaskRater("over", target=2)]}, "errs on class 2"),
    ],
)
def test_wrong_use_is_explained(random_truth, arguments, message):
    with pytest.raises(InputError, match=message):
        simulate_masks(random_truth(0), **arguments)


def test_a_background_target_and_empty_truth_are_refused():
    with pytest.raises(InputError, match="foreground class"):
        MaskRater("over", target=0)
    with pytest.raises(InputError, match="no item"):
        simulate_masks(np.zeros((0, 4, 4), dtype=np.uint8))
    with pytest.raises(InputError, match="at least two classes"):
        simulate_masks(np.zeros((1, 4, 4), dtype=np.uint8), n_classes=1)
