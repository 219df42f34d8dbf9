"""Skill over time: changes are found where they are, and seldom where there are none."""

from __future__ import annotations

import numpy as np
import pytest

from annotruth import Annotations
from annotruth.errors import InputError
from annotruth.fusion import DawidSkene
from annotruth.fusion.over_time import RaterHistory, _step_chance, holm, skill_over_time
from annotruth.io.timing import AnswerTimes

ITEMS, RATERS, CLASSES = 150, 6, 3


def history(
    skill: np.ndarray, seconds: np.ndarray | None = None, time: np.ndarray | None = None, seed: int = 0
) -> list[RaterHistory]:
    """Raters who are right with a probability that depends on the answer, (items, raters); an item a minute."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, CLASSES, ITEMS)
    wrong = (truth[:, None] + rng.integers(1, CLASSES, skill.shape)) % CLASSES
    annotations = Annotations.from_answers(np.where(rng.random(skill.shape) < skill, truth[:, None], wrong))
    answers = annotations.answers
    taken = np.full(len(answers), np.nan) if seconds is None else seconds[answers.item, answers.rater]
    when = (60.0 * np.arange(ITEMS) if time is None else time)[answers.item]
    fused = DawidSkene().fit(annotations)
    return skill_over_time(annotations, fused.prior_, fused.confusion_, AnswerTimes(when, taken))


def test_a_rater_who_gets_worse_is_found_and_nobody_else() -> None:
    skill = np.full((ITEMS, RATERS), 0.85)
    skill[90:, 2] = 0.45
    found = history(skill)
    assert [len(one.changes) for one in found] == [0, 0, 1, 0, 0, 0]
    change = found[2].changes[0]
    assert abs(change.time / 60 - 90) <= 15
    assert change.before > change.after + 0.2
    assert found[2].chance < 0.01
    assert "worse from 1970-01-01 0" in found[2].words[0]
    assert found[0].words == ()


def test_without_change_seldom_is_one_said() -> None:
    skill = np.linspace(0.6, 0.95, RATERS) * np.ones((ITEMS, 1))
    found = [history(skill, seed=seed) for seed in range(6)]
    assert sum(any(one.words for one in table) for table in found) <= 2  # two tests each at 5 %
    chances = np.array([one.chance for table in found for one in table])
    assert 0.3 < chances.mean() < 0.7
    assert (chances < 0.2).mean() < 0.45


def test_the_error_rate_of_changes_is_the_one_stated() -> None:
    """By the test alone, with 20 histories to a table: skewed values as those of answers that are mostly right."""
    rng, wrong, chances = np.random.default_rng(3), 0, []
    for _ in range(60):
        table = [_step_chance(rng.choice([-0.85, 0.15], 40, p=[0.15, 0.85]), rng, 999)[0] for _ in range(20)]
        wrong += any(holm(table, 0.05))
        chances += table
    # Three standard errors above the level, which exact tests exceed once in a thousand runs.
    assert wrong / 60 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)
    for level in (0.01, 0.05, 0.2):
        assert np.mean(np.array(chances) <= level) <= level + 3 * np.sqrt(level * (1 - level) / len(chances))


def test_fatigue_within_sessions_and_haste_are_told_apart() -> None:
    place = np.arange(ITEMS) % 75  # two sessions of 75 answers, two minutes apart
    skill = np.full((ITEMS, RATERS), 0.85)
    skill[:, 1] = np.linspace(1.0, 0.35, 75)[place]
    seconds = np.random.default_rng(1).uniform(2, 32, (ITEMS, RATERS))
    skill[:, 4] = np.where(seconds[:, 4] < 8, 0.4, 0.95)
    found = history(skill, seconds, 120.0 * np.arange(ITEMS) + 7200 * (np.arange(ITEMS) >= 75))
    tired = [one.fatigue is not None and one.fatigue.found for one in found]
    hurried = [one.speed is not None and one.speed.found for one in found]
    assert tired == [False, True, False, False, False, False]
    assert hurried == [False, False, False, False, True, False]
    assert found[1].fatigue is not None
    assert found[1].fatigue.slope < -0.1
    assert "tires within a session" in " ".join(found[1].words)
    assert "hurried answers" in " ".join(found[4].words)
    assert found[0].seconds == pytest.approx(17, abs=3)


def test_of_few_answers_and_answers_without_times_nothing_is_said() -> None:
    annotations = Annotations.from_answers(np.array([[0, 1, 1]] * 30))
    nothing = np.full(90, np.nan)
    matrices = np.tile(np.eye(2), (3, 1, 1))
    found = skill_over_time(annotations, np.full(2, 0.5), matrices, AnswerTimes(nothing, nothing))
    assert all(len(one.time) == 0 and np.isnan(one.chance) and not one.words for one in found)
    with pytest.raises(InputError, match="90 answers but 4 times"):
        skill_over_time(annotations, np.full(2, 0.5), matrices, AnswerTimes(np.zeros(4), np.zeros(4)))
