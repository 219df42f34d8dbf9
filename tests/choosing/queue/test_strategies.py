"""Strategies by name, and that buying by information needs fewer labels than at random."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import annotruth as at
from annotruth.choosing.queue import STRATEGIES, next_labels
from annotruth.choosing.queue.fusing import SparseDawidSkene
from annotruth.choosing.queue.posteriors import ItemPosteriors, table_posteriors
from annotruth.choosing.queue.scoring import InformationScores
from annotruth.choosing.queue.strategies import make_scores, register, score_consensus, score_disagreement
from annotruth.errors import InputError


def crowd(seed: int, n_items: int = 120, n_raters: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Answers of everybody, unequal in skill, a third of them spammers; and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n_items)
    skill = np.where(np.arange(n_raters) % 3 == 0, 1 / 3, rng.uniform(0.6, 0.95, n_raters))
    wrong = (truth[:, None] + rng.integers(1, 3, (n_items, n_raters))) % 3
    return np.where(rng.random(wrong.shape) < skill, truth[:, None], wrong), truth


def labels_needed(strategy: str, seed: int, target: float = 0.95, step: int = 60) -> int:
    """Buy labels, beginning with one for each item, until so many items are right."""
    answers, truth = crowd(seed)
    rng = np.random.default_rng(seed)
    bought = np.full_like(answers, -1)
    first = rng.integers(0, answers.shape[1], len(answers))
    bought[np.arange(len(answers)), first] = answers[np.arange(len(answers)), first]
    for _ in range(20):
        labels = at.Annotations.from_answers(bought, classes=3)
        fused = SparseDawidSkene().fit(labels)
        if (fused.predict() == truth).mean() >= target:
            break
        rows = next_labels(fused, labels, step, strategy=strategy, seed=seed).table
        rows = rows[rows["action"] == "label"]
        item, rater = ([int(name.split("_")[1]) for name in rows[column]] for column in ("item", "rater"))
        bought[item, np.array(rater) - 1] = answers[item, np.array(rater) - 1]
    return int((bought >= 0).sum())


@pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")  # while few labels are bought
def test_buying_by_information_needs_clearly_fewer_labels_than_at_random() -> None:
    needed = {name: [labels_needed(name, seed) for seed in (0, 1)] for name in ("information", "random")}
    assert np.mean(needed["information"]) <= 0.75 * np.mean(needed["random"])


@pytest.fixture
def known() -> ItemPosteriors:
    answers, _ = crowd(0, n_items=20)
    answers[np.random.default_rng(0).random(answers.shape) < 0.6] = -1
    answers[0], answers[1] = -1, -1
    answers[0, :4], answers[1, :4] = [0, 0, 0, 0], [0, 1, 2, 0]
    return table_posteriors(SparseDawidSkene().fit(at.Annotations.from_answers(answers, classes=3)))


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_every_strategy_scores_all_items(known: ItemPosteriors, name: str) -> None:
    known = replace(known, disagreement=np.linspace(0, 1, len(known.items)))
    scores = make_scores(name, InformationScores(known, np.ones(12)), np.random.default_rng(0))
    first = scores.first()
    assert first.shape == (20,)
    assert (first >= 0).all()
    assert STRATEGIES[name].about


def test_disputed_items_come_first(known: ItemPosteriors) -> None:
    rng = np.random.default_rng(0)
    for score in (score_disagreement, score_consensus):
        found = score(known, rng)
        assert found[1] > found[0]


def test_consensus_is_activelab_without_a_classifier() -> None:
    answers = np.array([[0, 0, 1], [1, 1, 1], [0, -1, 1], [1, 1, -1]])
    known = table_posteriors(SparseDawidSkene().fit(at.Annotations.from_answers(answers)))
    consensus = known.posterior.argmax(axis=1)
    agrees = np.where(answers >= 0, answers == consensus[:, None], np.nan)
    mean, share = np.nanmean(agrees), np.nanmean(agrees, axis=0)
    commonest = np.bincount(consensus).max() / 4
    weight = np.clip(1 - (1 - share) / (1 - commonest), 1e-6, None)
    average = np.nanmean(np.where(answers >= 0, weight, np.nan))
    expected = []
    for item in range(4):
        there = answers[item] >= 0
        speaks = np.where(agrees[item, there] == 1, mean, 1 - mean)
        expected.append(1 - (weight[there] @ speaks + average / 2) / (weight[there].sum() + average))
    assert score_consensus(known, np.random.default_rng(0)) == pytest.approx(expected)


def test_a_strategy_is_added_by_a_function(known: ItemPosteriors) -> None:
    @register("first")
    def score_first(known: ItemPosteriors, rng: np.random.Generator) -> np.ndarray:
        """The first items first. And so on."""
        return np.arange(len(known.items), 0, -1)

    try:
        assert STRATEGIES["first"].about == "The first items first"
        scores = make_scores("first", InformationScores(known, np.ones(12)), np.random.default_rng(0))
        assert scores.first().argmax() == 0
    finally:
        del STRATEGIES["first"]


def test_unknown_names_are_refused(known: ItemPosteriors) -> None:
    with pytest.raises(InputError, match=r"Unknown strategy 'magic'\. Known: information, "):
        make_scores("magic", InformationScores(known, np.ones(12)), np.random.default_rng(0))
