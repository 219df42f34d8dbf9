"""The fusion that labels are chosen by where none is named."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import annotruth as at
from annotruth.choosing.queue.fusing import PRIOR_SKILL, SparseDawidSkene, usual_estimator
from annotruth.fusion import STAPLE
from annotruth.fusion.base import FusionEstimator
from annotruth.fusion.checks import CHECKS


def test_single_labels_say_nothing_about_who_gave_them() -> None:
    rng = np.random.default_rng(0)
    answers = np.full((200, 20), -1)
    answers[np.arange(200), rng.integers(0, 20, 200)] = rng.integers(0, 4, 200)
    fused = SparseDawidSkene().fit(at.Annotations.from_answers(answers))
    assert np.ptp(fused.skill_) < 0.01
    assert fused.skill_.mean() == pytest.approx(PRIOR_SKILL, abs=0.05)
    given = answers.max(axis=1)
    assert (fused.predict() == given).all()
    assert np.ptp(np.asarray(fused.predict_proba()).max(axis=1)) < 0.2


def test_with_many_labels_it_finds_the_raters() -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 3, 800)
    skill = np.array([0.9, 0.8, 0.7, 0.34])
    answers = np.where(
        rng.random((800, 4)) < skill, truth[:, None], (truth[:, None] + rng.integers(1, 3, (800, 4))) % 3
    )
    fused = SparseDawidSkene().fit(at.Annotations.from_answers(answers))
    assert fused.skill_ == pytest.approx(skill, abs=0.05)
    assert (fused.predict() == truth).mean() >= (at.DawidSkene().fit(at.Annotations.from_answers(answers)).predict()
                                                 == truth).mean() - 0.01  # fmt: skip


def test_new_answers_are_added() -> None:
    answers = np.array([[0, 0, -1], [1, 1, -1], [0, 1, -1]])
    fused = SparseDawidSkene().fit(at.Annotations.from_answers(answers))
    more = at.Annotations.from_answers(np.array([[0, 1]]), raters=["rater_3", "rater_4"], items=["item_2"])
    fused.partial_fit(more)
    assert fused.raters_ == ("rater_1", "rater_2", "rater_3", "rater_4")
    assert len(fused.skill_) == 4


def test_masks_are_fused_by_staple() -> None:
    assert isinstance(usual_estimator(at.Annotations.from_masks(np.zeros((1, 2, 4, 4), dtype=np.uint8))), STAPLE)


@pytest.mark.filterwarnings("ignore:.*did not settle")
@pytest.mark.parametrize(
    "check", [each for each in CHECKS if "in_workers" not in each.__name__], ids=lambda check: check.__name__
)
def test_it_passes_the_common_checks_of_estimators(check: Callable[[FusionEstimator], None]) -> None:
    check(SparseDawidSkene())
