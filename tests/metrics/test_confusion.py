"""Confusion matrices and their errors, against scikit-learn and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix as sklearn_confusion

from annotruth.data.confusion import normalise_rows
from annotruth.errors import InputError
from annotruth.metrics import (
    accuracy,
    confusion_counts,
    confusion_error,
    confusion_matrix,
    confusion_rmse,
    dominance_margin,
    expected_confusion,
    per_item_confusion,
    skill,
)

seeds = st.integers(0, 10_000)


def random_confusion(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(2, 5))
def test_counts_are_scikit_learns(seed, n_classes):
    rng = np.random.default_rng(seed)
    truth, observed = rng.integers(0, n_classes, (2, 40))
    expected = sklearn_confusion(truth, observed, labels=range(n_classes))
    np.testing.assert_array_equal(confusion_counts(truth, observed, n_classes), expected)
    expected = sklearn_confusion(truth, observed, labels=range(n_classes), normalize="true")
    np.testing.assert_allclose(np.nan_to_num(confusion_matrix(truth, observed, n_classes)), expected)


def test_batches_broadcast_and_keep_their_own_counts():
    rng = np.random.default_rng(0)
    truth, observed = rng.integers(0, 3, (4, 1, 6, 5)), rng.integers(0, 3, (4, 2, 6, 5))
    counts = confusion_counts(truth, observed, 3, batch_axes=2)
    assert counts.shape == (4, 2, 3, 3)
    np.testing.assert_array_equal(counts[3, 1], confusion_counts(truth[3, 0], observed[3, 1], 3))
    np.testing.assert_array_equal(counts.sum(axis=(0, 1)), confusion_counts(truth, observed, 3))


def test_missing_labels_do_not_count_in_any_form():
    truth, observed = np.array([0, 1, 1, 255]), np.array([0, -1, 1, 1])
    np.testing.assert_array_equal(confusion_counts(truth, observed, 2), np.eye(2))
    mask = np.array([0, 255, 1, 1], dtype=np.uint8)
    np.testing.assert_array_equal(confusion_counts(truth, mask, 2), np.eye(2))
    assert np.isnan(confusion_matrix(truth, np.full(4, -1), 2)).all()


def test_whole_numbers_may_come_as_floats_and_classes_as_booleans():
    np.testing.assert_array_equal(confusion_counts(np.array([0.0, 1.0]), np.array([False, True]), 2), np.eye(2))
    with pytest.raises(InputError, match="whole numbers"):
        confusion_counts(np.array([0.5]), np.array([0]), 2)


def test_class_255_is_a_class_where_there_are_so_many():
    assert confusion_counts(np.array([255, 3]), np.array([255, -1]), 300)[255, 255] == 1


def test_labels_outside_the_classes_are_refused():
    with pytest.raises(InputError, match="Observed labels: label 7"):
        confusion_counts(np.array([0]), np.array([7]), 2)
    with pytest.raises(InputError, match="Truth: label -2"):
        confusion_counts(np.array([-2]), np.array([0]), 2)


def test_orientation_a_transposed_estimate_does_not_pass():
    """Trap: estimate and truth compared in transposed orientation, or joint against conditional probabilities."""
    truth = np.array([0] * 90 + [1] * 10)
    observed = truth.copy()
    observed[:30] = 1  # over-drawing: background is called foreground, never the reverse
    matrix = confusion_matrix(truth, observed, 2)
    np.testing.assert_allclose(matrix, [[2 / 3, 1 / 3], [0, 1]])
    joint = confusion_counts(truth, observed, 2) / len(truth)
    assert confusion_rmse(matrix, matrix) == 0
    assert confusion_rmse(matrix.T, matrix) > 0.2
    assert confusion_rmse(joint, matrix) > 0.2


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_errors_are_what_their_formulas_say(seed):
    rng = np.random.default_rng(seed)
    estimate, truth = random_confusion(rng, 3, 4, 4), random_confusion(rng, 3, 4, 4)
    frobenius = sum(np.linalg.norm(truth[r] - estimate[r], "fro") ** 2 for r in range(3))
    assert confusion_error(estimate, truth) == pytest.approx(frobenius / (3 * 4))
    assert confusion_rmse(estimate, truth) == pytest.approx(np.sqrt(np.square(truth - estimate).mean()))
    order = rng.permutation(3)
    assert confusion_rmse(estimate[order], truth[order]) == pytest.approx(confusion_rmse(estimate, truth))
    assert confusion_error(truth, truth) == confusion_rmse(truth, truth) == 0


def test_rows_the_truth_does_not_know_are_left_out_but_holes_in_the_estimate_are_not():
    truth = np.array([[[0.5, 0.5], [np.nan, np.nan]]])
    estimate = np.array([[[0.5, 0.5], [0.0, 1.0]]])
    assert confusion_rmse(estimate, truth) == confusion_error(estimate, truth) == 0
    assert np.isnan(confusion_rmse(estimate, np.full((1, 2, 2), np.nan)))
    with pytest.raises(InputError, match=r"no row \[0, 1\]"):
        confusion_rmse(truth, estimate)
    with pytest.raises(InputError, match="one shape"):
        confusion_rmse(estimate[0], truth)


def test_skill_is_the_mean_diagonal():
    assert skill(np.eye(4)) == 1
    np.testing.assert_allclose(skill(np.full((3, 2, 5, 5), 0.2)), np.full((3, 2), 0.2))
    assert np.isnan(skill(np.full((2, 2), np.nan)))


def test_accuracy_leaves_out_missing_labels():
    assert accuracy(np.array([1, 2, -1, 0]), np.array([1, 0, 0, -1])) == 0.5
    mask, truth = np.array([[1, 0, 255]], dtype=np.uint8), np.array([[1, 1, 1]], dtype=np.uint8)
    assert accuracy(mask, truth) == 0.5
    assert accuracy(np.array([255]), np.array([255])) == 1  # a class like any other in a label table
    assert np.isnan(accuracy(np.array([-1]), np.array([0])))
    with pytest.raises(InputError, match="shape"):
        accuracy(mask, truth[0])


@settings(max_examples=20, deadline=None)
@given(seeds)
def test_pixel_matrices_are_averaged_with_the_posterior_as_weight(seed):
    rng = np.random.default_rng(seed)
    posterior = np.moveaxis(random_confusion(rng, 2, 4, 3, 3), -1, 1)
    pixels = np.moveaxis(random_confusion(rng, 2, 2, 3, 4, 3, 3), (3, 4), (-2, -1))
    found = per_item_confusion(posterior.astype(np.float32), pixels.astype(np.float32))
    assert found.shape == (2, 2, 3, 3)
    for item, rater, row in np.ndindex(2, 2, 3):
        weight = posterior[item, row]
        expected = (weight * pixels[item, rater, row]).sum(axis=(1, 2)) / weight.sum()
        np.testing.assert_allclose(found[item, rater, row], expected, rtol=1e-5)
    np.testing.assert_allclose(found.sum(axis=-1), 1, rtol=1e-5)


def test_one_matrix_for_all_pixels_comes_out_as_it_went_in():
    rng = np.random.default_rng(0)
    posterior = np.moveaxis(random_confusion(rng, 2, 5, 4, 3), -1, 1)
    matrices = random_confusion(rng, 3, 3, 3)
    found = per_item_confusion(posterior, matrices[None, ..., None, None])
    np.testing.assert_allclose(found, np.stack([matrices, matrices]))


@settings(max_examples=20, deadline=None)
@given(seeds)
def test_with_a_certain_truth_the_expected_confusion_is_the_counted_one(seed):
    rng = np.random.default_rng(seed)
    truth, observed = rng.integers(0, 3, (2, 4, 5)), rng.integers(0, 3, (2, 3, 4, 5))
    observed[rng.random(observed.shape) < 0.2] = 255
    certain = np.moveaxis(np.eye(3)[truth], -1, 1)
    expected = normalise_rows(confusion_counts(truth[:, None], observed, 3, batch_axes=2))
    np.testing.assert_allclose(expected_confusion(certain, observed), expected)


def test_absent_classes_and_absent_raters_give_nan_rows():
    posterior = np.zeros((1, 2, 2, 2))
    posterior[:, 0] = 1
    observed = np.zeros((1, 2, 2, 2), dtype=np.uint8)
    observed[0, 1] = 255
    found = expected_confusion(posterior, observed)
    np.testing.assert_array_equal(found[0, 0], [[1, 0], [np.nan, np.nan]])
    assert np.isnan(found[0, 1]).all()
    pixels = np.broadcast_to(np.eye(2)[:, :, None, None], (1, 2, 2, 2, 2, 2))
    np.testing.assert_array_equal(per_item_confusion(posterior, pixels)[0, 0], [[1, 0], [np.nan, np.nan]])


def test_shapes_that_do_not_go_together_are_refused():
    posterior = np.full((2, 3, 4, 4), 1 / 3)
    with pytest.raises(InputError, match="does not go with pixel matrices"):
        per_item_confusion(posterior, np.zeros((2, 5, 3, 2, 4, 4)))
    with pytest.raises(InputError, match="does not go with pixel matrices"):
        per_item_confusion(posterior, np.zeros((3, 3)))
    with pytest.raises(InputError, match="does not go with labels"):
        expected_confusion(posterior, np.zeros((2, 5, 4, 3), dtype=int))


def test_dominance_is_the_least_margin_over_columns():
    swapped = np.eye(3)[[1, 0, 2]]
    mean = (2 * np.eye(3) + swapped) / 3
    assert dominance_margin(np.stack([np.eye(3), np.eye(3), swapped])) == pytest.approx(mean[0, 0] - mean[1, 0])
