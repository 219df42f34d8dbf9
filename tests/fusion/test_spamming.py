"""Spammers are told from raters who err, at the error rate that is stated."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from annotruth import Annotations
from annotruth.fusion import DawidSkene, spamming
from annotruth.fusion.spamming import Spamming, find_spammers
from annotruth.simulate import hammer_spammer, simulate_labels

CLASSES = 4


def sparse_crowd(seed: int, answers: int = 20, raters: int = 60, spammers: int = 15) -> tuple[Annotations, np.ndarray]:
    """Raters with so many answers each, five to an item; of the last ones, half guess and half always say the same."""
    rng = np.random.default_rng(seed)
    items = raters * answers // 5
    truth = rng.integers(0, CLASSES, items)
    matrices = [hammer_spammer(CLASSES, rng.uniform(0.45, 0.95)) for _ in range(raters - spammers)]
    matrices += [hammer_spammer(CLASSES, 0.0) for _ in range(spammers // 2)]
    matrices += [np.eye(CLASSES)[np.full(CLASSES, rng.integers(CLASSES))] for _ in range(spammers - spammers // 2)]
    dense = simulate_labels(truth, np.stack(matrices), seed=seed).annotations().answer_matrix()
    kept = np.full_like(dense, -1)
    places = np.concatenate([rng.permutation(items) for _ in range(5)]).reshape(raters, answers)
    for rater, mine in enumerate(places):
        kept[mine, rater] = dense[mine, rater]
    return Annotations.from_answers(kept, classes=CLASSES), np.arange(raters) >= raters - spammers


def found_in(annotations: Annotations) -> Spamming:
    fused = DawidSkene().fit(annotations)
    return find_spammers(annotations, fused.predict_proba().mean(axis=0), fused.confusion_)


def test_spammers_with_twenty_answers_each_are_found():
    scores, truly, called, caught = [], [], [], []
    for seed in range(5):
        annotations, spams = sparse_crowd(seed)
        found = found_in(annotations)
        scores.append(-found.informative)
        truly.append(spams)
        called.append([name in found.spammers for name in annotations.raters])
        caught.append(found.caught)
    truly, called = np.concatenate(truly), np.concatenate(called)
    assert roc_auc_score(truly, np.concatenate(scores)) > 0.95
    assert called[~truly].mean() <= 0.01  # among them many who guess nearly every other answer
    assert called[truly].mean() == pytest.approx(np.concatenate(caught)[truly].mean(), abs=0.1)


def test_the_stated_error_rates_hold_for_honest_raters_however_weak_and_for_spammers(monkeypatch):
    monkeypatch.setattr(spamming, "DOUBT", 0.0)  # here, matrices are known
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 40)
    ordinary, weakest, spam = hammer_spammer(3, 0.8), hammer_spammer(3, 0.4), hammer_spammer(3, 0.0)
    many = np.stack([ordinary] * 400 + [weakest] * 200 + [spam] * 199)
    annotations = simulate_labels(truth, many, seed=0).annotations()
    found = find_spammers(annotations, np.full(3, 1 / 3), many, level=0.05)
    called = np.array([found.verdict(rater) == "spammer" for rater in range(len(many))])
    assert called[:400].mean() == 0
    assert called[400:600].mean() <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 200)
    assert called[600:].mean() == pytest.approx(found.caught[600:].mean(), abs=0.07)
    assert found.chance_of_honest[400:600].mean() == pytest.approx(0.5, abs=0.06)


def test_the_sums_are_those_of_every_possible_answer(monkeypatch):
    monkeypatch.setattr(spamming, "DOUBT", 0.0)
    matrix = np.array([[0, 0, 1], [1, 1, 1], [1, 0, 1], [0, -1, -1]])
    confusion = np.stack([np.array([[0.9, 0.1], [0.2, 0.8]])] * 2 + [np.array([[0.5, 0.5], [0.4, 0.6]])])
    frequency = np.array([0.6, 0.4])
    found = find_spammers(Annotations.from_answers(matrix), frequency, confusion)
    rater, ordinary = 0, confusion[0]  # the first two are the better half
    habit = np.array([2.5, 2.5]) / 5
    expected = np.zeros(2)
    really = 0.0
    for answers in matrix:
        others = frequency.copy()
        for other in (1, 2):
            others *= 1 if answers[other] < 0 else confusion[other][:, answers[other]]
        chances = others / others.sum() @ ordinary
        ratio = np.log((chances + habit) / 2 / habit)  # the weakest honest rater looks at every other item
        expected += chances @ ratio, habit @ ratio
        really += ratio[answers[rater]]
    assert found.informative[rater] == pytest.approx((really - expected[1]) / (expected[0] - expected[1]))


def test_who_says_the_opposite_is_wrong_but_no_spammer():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 100)
    opposite = np.array([[0.1, 0.9], [0.9, 0.1]])
    crowd = {
        "ann": hammer_spammer(2, 0.9),
        "bob": hammer_spammer(2, 0.9),
        "cy": hammer_spammer(2, 0.85),
        "dee": opposite,
    }
    found = found_in(simulate_labels(truth, crowd).annotations())
    assert found.spammers == ()
    assert found.informative[3] < 0
    assert found.verdict(3) == "informative"


def test_of_a_few_answers_nothing_is_said_and_of_none_neither():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 60)
    matrix = simulate_labels(truth, np.stack([hammer_spammer(2, 0.8)] * 4)).annotations().answer_matrix()
    matrix[2:, 2], matrix[:, 3] = -1, -1
    found = found_in(Annotations.from_answers(matrix, classes=2))
    assert found.verdict(2) == "unclear"
    assert np.isnan(found.informative[3])
    assert "rater_4" not in found.spammers
