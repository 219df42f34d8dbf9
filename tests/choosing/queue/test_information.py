"""Information of labels, held against sums over all that can happen, with SciPy."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy as scipy_entropy

from annotruth.choosing.queue.information import (
    MAX_BRANCHES,
    accuracy_gain,
    branch,
    branch_information,
    entropy,
    expected_accuracy,
    information,
)


def matrices(rng: np.random.Generator, n_raters: int, n_classes: int) -> np.ndarray:
    return rng.dirichlet(np.ones(n_classes), (n_raters, n_classes))


def mutual_information(joint: np.ndarray) -> float:
    """Of a table of joint probabilities: the Kullback-Leibler divergence from the product of its margins."""
    margins = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    return float(scipy_entropy(joint.ravel(), margins.ravel()))


def joint_of(posterior: np.ndarray, *confusions: np.ndarray) -> np.ndarray:
    """P(truth, labels), (classes, labels of all raters)."""
    n_classes = len(posterior)
    columns = []
    for labels in product(range(n_classes), repeat=len(confusions)):
        columns.append(posterior * np.prod([each[:, label] for each, label in zip(confusions, labels)], axis=0))
    return np.stack(columns, axis=1)


def test_information_is_that_of_the_joint_distribution() -> None:
    rng = np.random.default_rng(0)
    posterior, confusion = rng.dirichlet(np.ones(4), 5), matrices(rng, 3, 4)
    found = information(posterior, confusion)
    for row, rater in product(range(5), range(3)):
        joint = joint_of(posterior[row], confusion[rater])
        assert found[row, rater] == pytest.approx(mutual_information(joint))
    assert entropy(posterior) == pytest.approx(scipy_entropy(posterior, axis=1))


def test_what_a_label_tells_beside_one_that_is_ordered_is_the_conditional_information() -> None:
    rng = np.random.default_rng(1)
    posterior, confusion = rng.dirichlet(np.ones(3), 4), matrices(rng, 2, 3)
    weight, after, given_up = branch(np.ones((4, 1)), posterior[:, None], confusion[0])
    assert not given_up.any()
    found = branch_information(weight, after, confusion[1:])[:, 0]
    gathered = branch_information(weight, after, np.repeat(confusion[None, 1:], 4, axis=0))[:, 0]
    for row in range(4):
        both = mutual_information(joint_of(posterior[row], *confusion))
        first = mutual_information(joint_of(posterior[row], confusion[0]))
        assert found[row] == pytest.approx(both - first)
        joint = joint_of(posterior[row], confusion[0])
        assert expected_accuracy(weight, after)[row] == pytest.approx(joint.max(axis=0).sum())
    assert gathered == pytest.approx(found)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_information_lies_between_nothing_and_all_that_is_unknown(seed: int, n_classes: int) -> None:
    rng = np.random.default_rng(seed)
    posterior, confusion = rng.dirichlet(np.full(n_classes, 0.3), 4), matrices(rng, 3, n_classes)
    gain = information(posterior, confusion)
    assert (gain >= 0).all()
    assert (gain <= entropy(posterior)[:, None] + 1e-9).all()
    spammer = np.repeat(rng.dirichlet(np.ones(n_classes))[None, None], n_classes, axis=1)
    assert information(posterior, spammer) == pytest.approx(0, abs=1e-9)
    assert information(posterior, np.eye(n_classes)[None])[:, 0] == pytest.approx(entropy(posterior))
    order = rng.permutation(n_classes)  # calling classes by other names tells as much
    assert information(posterior, confusion[:, :, order]) == pytest.approx(gain)
    weight, after, _ = branch(np.ones((4, 1)), posterior[:, None], confusion[0])
    assert (branch_information(weight, after, confusion) <= gain + 1e-9).all()


def test_outcomes_that_are_given_up_only_make_gains_smaller() -> None:
    rng = np.random.default_rng(2)
    posterior, confusion = rng.dirichlet(np.ones(5), 3), matrices(rng, 3, 5)
    weight, after, given_up = np.ones((3, 1)), posterior[:, None], np.zeros(3)
    for matrix in confusion[:2]:
        weight, after, lost = branch(weight, after, matrix)
        given_up += lost
    assert weight.shape == (3, MAX_BRANCHES)
    assert (weight.sum(axis=1) < 1).all()
    for row in range(3):
        joint = joint_of(posterior[row], *confusion[:2])
        exact = joint.max(axis=0).sum()
        assert expected_accuracy(weight, after)[row] + given_up[row] == pytest.approx(exact)
        three = mutual_information(joint_of(posterior[row], *confusion))
        two = mutual_information(joint)
        assert branch_information(weight, after, confusion[2:])[row, 0] <= three - two + 1e-12


def test_labels_that_cannot_be_leave_no_trace() -> None:
    weight, after, _ = branch(np.ones((1, 1)), np.array([[[1.0, 0.0]]]), np.eye(2))
    assert weight[0].tolist() == [1, 0]
    assert np.isfinite(after).all()


def test_the_gain_of_accuracy_is_that_of_the_outcomes_of_a_label() -> None:
    rng = np.random.default_rng(3)
    posterior, confusion = rng.dirichlet(np.ones(3), (4, 2)), matrices(rng, 5, 3)
    weight = rng.dirichlet(np.ones(2), 4)
    found = accuracy_gain(weight, posterior, confusion)
    for rater in range(5):
        after = expected_accuracy(*branch(weight, posterior, confusion[rater])[:2])
        assert found[:, rater] == pytest.approx(after - expected_accuracy(weight, posterior))
    apart = accuracy_gain(weight, posterior, np.broadcast_to(confusion, (4, *confusion.shape)))
    assert apart == pytest.approx(found)
