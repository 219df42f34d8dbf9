"""Variational Bayes for Dawid and Skene's model."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import digamma

from annotruth import IBCC, Annotations, DawidSkene, HierarchicalDawidSkene
from annotruth.errors import InputError
from annotruth.fusion.dirichlet import mean_logs

from .crowd_kit import crowd


def by_hand(answers: np.ndarray, n_classes: int, prior: np.ndarray, rounds: int) -> np.ndarray:
    """Simpson's updates, number by number: posterior (items, classes)."""
    n_items, n_raters = answers.shape
    truth = np.stack([[np.mean(row[row >= 0] == k) for k in range(n_classes)] for row in answers])
    for _ in range(rounds):
        labels = np.tile(prior, (n_raters, 1, 1)).astype(float)
        items = 1 + truth.sum(axis=0)
        for i, r in zip(*np.nonzero(answers >= 0)):
            labels[r, :, answers[i, r]] += truth[i]
        score = np.tile(digamma(items) - digamma(items.sum()), (n_items, 1))
        for i, r in zip(*np.nonzero(answers >= 0)):
            for k in range(n_classes):
                score[i, k] += digamma(labels[r, k, answers[i, r]]) - digamma(labels[r, k].sum())
        truth = np.exp(score - score.max(axis=1, keepdims=True))
        truth /= truth.sum(axis=1, keepdims=True)
    return truth


@pytest.mark.parametrize("n_classes", [2, 3])
def test_posterior_is_that_of_the_updates_by_hand(n_classes: int) -> None:
    annotations, _, _ = crowd(25, [0.9, 0.8, 0.7, 0.5], n_classes, keep=0.7)
    fused = IBCC(right=3.0, wrong=1.5, max_iter=400, tol=0).fit(annotations)
    prior = np.where(np.eye(n_classes) > 0, 3.0, 1.5 / (n_classes - 1))
    expected = by_hand(annotations.answer_matrix(), n_classes, prior, rounds=300)
    np.testing.assert_allclose(fused.predict_proba(), expected, atol=1e-6)


def few_answers(seed: int) -> tuple[Annotations, np.ndarray]:
    """200 raters with about four answers each, of ten kinds of skill."""
    rng = np.random.default_rng(seed)
    truth, skill = rng.integers(0, 3, 250), np.repeat(np.linspace(0.45, 0.95, 10), 20)
    answers = np.where(
        rng.random((250, 200)) < skill, truth[:, None], (truth[:, None] + rng.integers(1, 3, (250, 200))) % 3
    )
    keep = np.argsort(rng.random((250, 200)), axis=1)[:, :3]
    given = np.zeros(answers.shape, dtype=bool)
    np.put_along_axis(given, keep, True, axis=1)
    return Annotations.from_answers(np.where(given, answers, -1), classes=3), truth


@pytest.mark.filterwarnings("ignore")
def test_few_answers_a_rater_are_better_used_than_by_maximum_likelihood() -> None:
    right: dict[str, list[float]] = {}
    for seed in range(2):
        annotations, truth = few_answers(seed)
        for model in (DawidSkene(), IBCC(), HierarchicalDawidSkene()):
            found = (model.fit(annotations).predict() == truth).mean()
            right.setdefault(type(model).__name__, []).append(float(found))
    mean = {name: np.mean(values) for name, values in right.items()}
    assert mean["HierarchicalDawidSkene"] > mean["DawidSkene"] + 0.03
    assert mean["IBCC"] > mean["DawidSkene"] + 0.03


def test_the_learnt_prior_is_the_one_that_explains_the_raters_best() -> None:
    annotations, _, _ = crowd(300, [0.9, 0.85, 0.8, 0.7, 0.6, 0.75, 0.8], 2, keep=0.5)
    state = HierarchicalDawidSkene(max_iter=2000, tol=1e-12).fit(annotations).state_
    logs = mean_logs(state.counts + state.prior_counts).mean(axis=0)
    np.testing.assert_allclose(mean_logs(state.prior_counts), logs, atol=1e-3)  # where the gradient vanishes


def test_intervals_take_few_iterations_of_the_prior(monkeypatch: pytest.MonkeyPatch) -> None:
    annotations, _, _ = crowd(40, [0.9, 0.85, 0.8, 0.7], 3, keep=0.7)
    fused = HierarchicalDawidSkene(max_iter=60, tol=1e-3).fit(annotations)
    learnt: list[np.ndarray] = []

    def count(_: object, counts: np.ndarray, prior: np.ndarray) -> np.ndarray:
        learnt.append(counts)
        return prior

    monkeypatch.setattr(HierarchicalDawidSkene, "learn_prior", count)
    low, high = fused.set_params(tol=0).skill_interval()
    assert len(learnt) <= 200 * 10
    assert (low < fused.skill_).all()
    assert (fused.skill_ < high).all()


def test_priors_of_nothing_are_refused() -> None:
    with pytest.raises(InputError, match="right and wrong must be positive"):
        IBCC(wrong=0).fit(crowd(5, [0.9, 0.8])[0])
