"""The steps of expectation-maximisation against brute force, and where others' arithmetic breaks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotruth.data.answers import Answers, answers_from_matrix
from annotruth.fusion.dawid_skene import maximise
from annotruth.fusion.em import confusion_from_counts, expected_counts, log_of, truth_posterior
from annotruth.fusion.votes import Votes
from annotruth.parallel.threads import threads


def random_case(seed: int, n_items: int = 7, n_raters: int = 4, n_classes: int = 3) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-1, n_classes, (n_items, n_raters))
    confusion = rng.dirichlet(np.ones(n_classes), (n_raters, n_classes))
    return matrix, confusion, rng.dirichlet(np.ones(n_classes))


def brute_posterior(matrix: np.ndarray, confusion: np.ndarray, prior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    joint = np.array(np.broadcast_to(prior, (len(matrix), prior.shape[-1])))
    for item, row in enumerate(matrix):
        for rater, label in enumerate(row):
            if label >= 0:
                joint[item] *= confusion[rater, :, label]
    return joint / joint.sum(axis=1, keepdims=True), np.log(joint.sum(axis=1))


@pytest.mark.parametrize("seed", range(5))
def test_posterior_against_brute_force(seed: int) -> None:
    matrix, confusion, prior = random_case(seed)
    answers, _ = answers_from_matrix(matrix, 3)
    posterior, evidence = truth_posterior(answers, np.log(prior), np.log(confusion), n_items=len(matrix))
    expected, expected_evidence = brute_posterior(matrix, confusion, prior)
    np.testing.assert_allclose(posterior, expected, rtol=1e-12)
    np.testing.assert_allclose(evidence, expected_evidence, rtol=1e-12)


def test_posterior_with_a_prior_per_item_and_gold() -> None:
    matrix, confusion, _ = random_case(1)
    answers, _ = answers_from_matrix(matrix, 3)
    priors = np.random.default_rng(2).dirichlet(np.ones(3), len(matrix))
    gold = np.full(len(matrix), -1)
    gold[2] = 1
    posterior, evidence = truth_posterior(answers, np.log(priors), np.log(confusion), gold=gold)
    expected, _ = brute_posterior(matrix, confusion, priors)
    np.testing.assert_allclose(np.delete(posterior, 2, 0), np.delete(expected, 2, 0), rtol=1e-12)
    assert posterior[2].tolist() == [0, 1, 0]
    said = [confusion[r, 1, label] for r, label in enumerate(matrix[2]) if label >= 0]
    np.testing.assert_allclose(evidence[2], np.log(priors[2, 1]) + np.log(said).sum())


def test_impossible_answers_leave_the_prior() -> None:
    answers, _ = answers_from_matrix(np.array([[1]]), 2)
    never = log_of(np.array([[[1.0, 0.0], [1.0, 0.0]]]))
    posterior, _ = truth_posterior(answers, np.log([0.3, 0.7]), never, n_items=1)
    np.testing.assert_allclose(posterior, [[0.3, 0.7]])


@pytest.mark.parametrize("seed", range(3))
def test_expected_counts_against_brute_force(seed: int) -> None:
    matrix, _, _ = random_case(seed)
    rng = np.random.default_rng(seed)
    posterior, weight = rng.dirichlet(np.ones(3), len(matrix)), rng.uniform(0, 5, len(matrix))
    answers, _ = answers_from_matrix(matrix, 3)
    expected = np.zeros((4, 3, 3))
    for item, row in enumerate(matrix):
        for rater, label in enumerate(row):
            if label >= 0:
                expected[rater, :, label] += weight[item] * posterior[item]
    np.testing.assert_allclose(expected_counts(answers, posterior, 4, weight), expected, rtol=1e-12)


def test_confusion_from_counts_with_prior_and_one_coin() -> None:
    counts = np.array([[[6.0, 2.0], [1.0, 1.0]]])
    np.testing.assert_allclose(confusion_from_counts(counts)[0], [[0.75, 0.25], [0.5, 0.5]])
    with_prior = confusion_from_counts(counts, np.array([[0.0, 2.0], [0.0, 6.0]]))
    np.testing.assert_allclose(with_prior[0], [[0.6, 0.4], [1 / 8, 7 / 8]])
    np.testing.assert_allclose(confusion_from_counts(counts, one_coin=True)[0], [[0.7, 0.3], [0.3, 0.7]])
    np.testing.assert_allclose(confusion_from_counts(np.zeros((1, 3, 3)), one_coin=True), 1 / 3)
    assert (confusion_from_counts(np.diag([1e9, 1e9])[None], one_coin=True) > 0).all()


def test_first_iteration_starts_from_the_shares_of_the_votes_so_that_ties_corrupt_nothing() -> None:
    # Two raters disagree on every item: each is right half of the time by its own start, whichever class comes first.
    matrix = np.array([[0, 1], [1, 0], [0, 1], [1, 0]])
    answers, _ = answers_from_matrix(matrix, 2)
    found = maximise(Votes.from_answers(answers, 4, 2, 2), prior="votes", max_iter=1, tol=0, stop="parameters")
    np.testing.assert_allclose(found.confusion, 0.5)
    np.testing.assert_allclose(found.prior, 0.5)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 6),
    st.integers(1, 4),
    st.sampled_from(["estimated", "votes"]),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=30, deadline=None)
def test_log_likelihood_never_falls(
    seed: int, n_raters: int, n_classes: int, prior: str, one_coin: bool, with_prior: bool
) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-1, n_classes, (20, n_raters))
    answers, _ = answers_from_matrix(matrix, n_classes)
    gold = np.where(rng.random(20) < 0.2, rng.integers(0, n_classes, 20), -1)
    votes = Votes.from_answers(answers, 20, n_raters, n_classes, gold)
    pseudo = rng.uniform(0.1, 2, (n_raters, n_classes, n_classes)) if with_prior else None
    found = maximise(votes, prior=prior, max_iter=30, tol=0, stop="likelihood", one_coin=one_coin, pseudo_counts=pseudo)
    path = found.log_likelihood
    assert np.isfinite(path).all()
    assert (np.diff(path) >= -1e-6 * np.maximum(1, np.abs(path[:-1]))).all()


def test_hundreds_of_raters_do_not_underflow() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, 60)
    matrix = np.where(rng.random((60, 500)) < 0.4, truth[:, None], rng.integers(0, 4, (60, 500)))
    answers, _ = answers_from_matrix(matrix, 4)
    votes = Votes.from_answers(answers, 60, 500, 4)
    found = maximise(votes, prior="estimated", max_iter=50, tol=1e-6, stop="likelihood")
    posterior, evidence = truth_posterior(answers, np.log(found.prior), np.log(found.confusion), n_items=60)
    assert np.isfinite(posterior).all()
    assert (evidence < -500).any()  # the plain product is below the smallest double
    assert (posterior.argmax(axis=1) == truth).all()


def test_counters_pass_two_to_the_24() -> None:
    # float32 counters stop at 2^24, where adding 1 changes nothing any more.
    answers = Answers(np.zeros(1, np.int32), np.zeros(1, np.int32), np.zeros(1, np.int16))
    counts = expected_counts(answers, np.array([[1.0, 0.0]]), 1, np.array([2.0**24 + 1]))
    assert counts[0, 0, 0] == 2**24 + 1
    many = Answers(np.arange(3, dtype=np.int32), np.zeros(3, np.int32), np.zeros(3, np.int16))
    counts = expected_counts(many, np.array([[1.0, 0.0]] * 3), 1, np.array([2.0**24, 1.0, 1.0]))
    assert counts[0, 0, 0] == 2**24 + 2


def test_threads_change_no_bit() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.integers(-1, 5, (20_000, 8))
    answers, _ = answers_from_matrix(matrix, 5)
    votes = Votes.from_answers(answers, len(matrix), 8, 5)
    found = []
    for count in (1, 2, 5):
        with threads(count):
            found.append(maximise(votes, prior="estimated", max_iter=5, tol=0, stop="likelihood"))
    assert found[0].confusion.tobytes() == found[1].confusion.tobytes() == found[2].confusion.tobytes()
    assert found[0].log_likelihood.tobytes() == found[1].log_likelihood.tobytes() == found[2].log_likelihood.tobytes()
