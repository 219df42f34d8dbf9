"""Grades and raters who lean."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from annotruth import Annotations, DawidSkene, OrdinalDawidSkene
from annotruth.errors import InputError
from annotruth.fusion.auto import choose
from annotruth.fusion.base import FusionEstimator
from annotruth.fusion.checks import CHECKS, check_cases_in_workers, check_recovers_truth
from annotruth.fusion.ordinal import _maximise, grade_matrices

CHECKED = [each for each in CHECKS if each not in (check_cases_in_workers, check_recovers_truth)]
BIAS, NOISE = np.array([0.0, 0.8, -0.6, 0.1]), np.array([0.4, 0.6, 0.7, 1.2])


def graded(seed: int, n_items: int, n_raters: int = 4, n_given: int = 4) -> tuple[Annotations, np.ndarray]:
    """Answers of raters with the biases and noises above, time and again, so many on each item; and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 5, n_items)
    bias, noise = np.resize(BIAS, n_raters), np.resize(NOISE, n_raters)
    answers = np.clip(np.rint(truth[:, None] + bias + rng.normal(0, noise, (n_items, n_raters))), 0, 4).astype(int)
    answers[np.argsort(np.argsort(rng.random(answers.shape), axis=1), axis=1) >= n_given] = -1
    return Annotations.from_answers(answers, classes=5), truth


@pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning", "ignore:.*did not settle")
@pytest.mark.parametrize("check", CHECKED)
def test_common_checks(check: Callable[[FusionEstimator], None]) -> None:
    """But for the raters who jump over grades, and for processes, which take seconds to start."""
    check(OrdinalDawidSkene())


def test_matrices_are_differences_of_the_normal_distribution() -> None:
    edges = np.concatenate([[-np.inf], np.arange(4) + 0.5, [np.inf]])
    expected = [
        [np.diff(norm.cdf(edges, loc=true + bias, scale=noise)) for true in range(5)]
        for bias, noise in zip(BIAS, NOISE)
    ]
    np.testing.assert_allclose(grade_matrices(BIAS, np.log(NOISE), 5), expected, atol=1e-9)


def test_the_m_step_comes_to_the_best_bias_and_noise() -> None:
    counts = np.random.default_rng(0).poisson(40 * grade_matrices(BIAS, np.log(NOISE), 5)).astype(float)
    bias, noise = np.zeros(4), np.full(4, np.log(0.6))
    for _ in range(15):
        bias, noise = _maximise(counts, bias, noise)
    for rater in range(4):

        def loss(point: np.ndarray, table: np.ndarray = counts[rater]) -> float:
            matrix = grade_matrices(point[:1], point[1:], 5)[0]
            return -(table * np.log(matrix)).sum() + (point[0] ** 2 + (point[1] - np.log(0.6)) ** 2) / 2

        best = minimize(loss, [0.0, -0.5], method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9})
        np.testing.assert_allclose([bias[rater], noise[rater]], best.x, atol=0.01)


def test_biases_and_noises_are_found() -> None:
    state = OrdinalDawidSkene().fit(graded(0, 1500)[0]).state_
    np.testing.assert_allclose(state.bias - state.bias.mean(), BIAS - BIAS.mean(), atol=0.15)
    np.testing.assert_allclose(np.exp(state.log_noise), NOISE, rtol=0.25)


@pytest.mark.filterwarnings("ignore")
def test_few_answers_a_rater_are_better_used_than_by_whole_matrices() -> None:
    right = []
    for seed in range(2):
        annotations, truth = graded(seed, 300, n_raters=60, n_given=3)
        right.append(
            [(model.fit(annotations).predict() == truth).mean() for model in (OrdinalDawidSkene(), DawidSkene())]
        )
    ordinal, whole = np.mean(right, axis=0)
    assert ordinal > whole + 0.05


@pytest.mark.filterwarnings("ignore")
def test_classes_without_an_order_are_refused_with_advice() -> None:
    drawn = Annotations.from_answers(np.array([[0, 1], [1, 2], [2, 2]]), classes=["G", "P", "X"])
    with pytest.raises(InputError, match=r"G, P, X have no order .*ordered=G,P,X; .* dawid-skene"):
        OrdinalDawidSkene().fit(drawn)
    assert OrdinalDawidSkene(ordered=True).fit(drawn).classes_[0] == "G"
    with pytest.raises(InputError, match="must name every class once: the classes are G, P, X, named are X, P"):
        OrdinalDawidSkene(ordered="X, P").fit(drawn)


@pytest.mark.filterwarnings("ignore")
def test_an_order_that_is_given_counts_whatever_the_names() -> None:
    numbered, _ = graded(0, 120, n_given=3)
    given = numbered.answers
    names, order = ["very low", "low", "medium", "high", "very high"], [3, 1, 2, 0, 4]
    by_number = OrdinalDawidSkene().fit(numbered)
    answers = np.full((len(numbered), 4), -1)
    answers[given.item, given.rater] = np.argsort(order)[given.label]
    shuffled = Annotations.from_answers(answers, classes=[names[grade] for grade in order])
    for ordered in (names, ",".join(names)):
        by_name = OrdinalDawidSkene(ordered=ordered).fit(shuffled)
        np.testing.assert_allclose(by_name.state_.bias, by_number.state_.bias, atol=1e-9)
        np.testing.assert_allclose(by_name.predict_proba(), by_number.predict_proba()[:, order], atol=1e-9)
        choice = choose(shuffled, [("majority", {})], ordered=ordered)
        assert any(name.startswith("ordinal-dawid-skene, ordered=") for name in choice.bits)
