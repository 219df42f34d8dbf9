"""Simulated answers follow the raters' matrices, and few are kept."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotruth.errors import InputError
from annotruth.metrics import confusion_matrix
from annotruth.simulate import hammer_spammer, label_group, neighbour_mixer, simulate_labels


@pytest.mark.parametrize("matrix", [np.eye(3), hammer_spammer(3, 0.4), neighbour_mixer(3, 0.2)])
def test_labels_follow_the_matrix(matrix):
    truth = np.random.default_rng(0).integers(0, 3, size=20_000)
    simulation = simulate_labels(truth, matrix[None])
    np.testing.assert_allclose(confusion_matrix(truth, simulation.answers[:, 0], 3), matrix, atol=0.02)
    np.testing.assert_array_equal(simulation.confusion[0], matrix)


def test_labels_of_probability_zero_are_never_given():
    truth = np.random.default_rng(0).integers(0, 10, size=5000)
    group = label_group("pairwise-flipper", 5, n_classes=10, skill=0.3)
    answers = simulate_labels(truth, group).answers
    for rater in range(5):
        assert (group[rater, truth, answers[:, rater]] > 0).all()


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 4), st.integers(0, 1000))
def test_exactly_k_labels_are_kept_per_item(k, seed):
    truth = np.random.default_rng(seed).integers(0, 3, size=30)
    raters = label_group("hammer-spammer", 4, 3, skill=0.5, seed=seed)
    full, some = simulate_labels(truth, raters, seed=seed), simulate_labels(truth, raters, seed=seed, keep=k)
    kept = some.answers != -1
    assert (kept.sum(axis=1) == k).all()
    np.testing.assert_array_equal(some.answers[kept], full.answers[kept])


def test_kept_labels_are_shared_out_evenly():
    answers = simulate_labels(np.zeros(4000, dtype=int), [np.eye(2)] * 4, keep=1).answers
    np.testing.assert_allclose((answers != -1).mean(axis=0), 0.25, atol=0.03)


def test_an_item_does_not_depend_on_those_after_it():
    truth, raters = np.arange(50) % 3, label_group("hammer-spammer", 4, 3, skill=0.5)
    all_items, few = simulate_labels(truth, raters, keep=2, seed=9), simulate_labels(truth[:20], raters, keep=2, seed=9)
    np.testing.assert_array_equal(all_items.answers[:20], few.answers)
    assert (simulate_labels(truth, raters, seed=1).answers != simulate_labels(truth, raters, seed=2).answers).any()


def test_unknown_truth_gets_no_label_and_annotations_know_it():
    simulation = simulate_labels(np.array([0, -1, 1]), {"ann": np.eye(2), "bob": np.eye(2)})
    np.testing.assert_array_equal(simulation.answers, [[0, 0], [-1, -1], [1, 1]])
    annotations = simulation.annotations(classes=["cat", "dog"])
    assert annotations.raters == ("ann", "bob")
    assert len(annotations.answers) == 4
    np.testing.assert_array_equal(annotations.truth, [0, -1, 1])


@pytest.mark.parametrize(
    ("truth", "raters", "message"),
    [
        ([0, 1], [np.eye(2).T * 2], "rows that sum to 1"),
        ([0, 1], [np.eye(2), np.eye(3)], "of size 2"),
        ([0, 5], [np.eye(2)], "label 5"),
        ([[0, 1]], [np.eye(2)], "one class number per item"),
        ([0, 1], [], "confusion matrices"),
    ],
)
def test_wrong_use_is_explained(truth, raters, message):
    with pytest.raises(InputError, match=message):
        simulate_labels(np.array(truth), raters)
