"""The fusion that labels are chosen by where none is named."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import annotruth as at
from annotruth.choosing.queue.fusing import OF_TWO, PRIOR_SKILL, SparseDawidSkene, usual_estimator
from annotruth.choosing.queue.posteriors import SHRINKAGE
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


@pytest.mark.parametrize(("n_classes", "weight"), [(1, SHRINKAGE), (2, OF_TWO), (4, SHRINKAGE)])
def test_the_prior_of_a_matrix_weighs_less_where_there_are_two_classes(n_classes: int, weight: float) -> None:
    rng = np.random.default_rng(2)
    fused = SparseDawidSkene().fit(at.Annotations.from_answers(rng.integers(0, n_classes, (30, 5)), classes=n_classes))
    prior = fused.pseudo_counts(fused.raters_, n_classes)
    assert prior is not None
    assert prior.sum(axis=2) == pytest.approx(weight)


def test_matrices_are_counts_of_shared_items_and_the_prior_by_hand() -> None:
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 60)
    answers = np.where(rng.random((60, 6)) < 0.8, truth[:, None], 1 - truth[:, None])
    answers[rng.random(answers.shape) < 0.6] = -1
    answers[0] = [1, -1, -1, -1, -1, -1]  # the only label of an item says nothing about who gave it
    answers[(answers < 0).all(axis=1), 0] = 0
    fused = SparseDawidSkene(max_iter=1000, tol=1e-12).fit(at.Annotations.from_answers(answers))
    counts = fused.pseudo_counts(fused.raters_, 2)
    assert counts is not None
    counts = counts.copy()
    for labels in answers:
        raters = np.flatnonzero(labels >= 0)
        chance = fused.prior_ * np.prod([fused.confusion_[rater, :, labels[rater]] for rater in raters], axis=0)
        for rater in raters if len(raters) > 1 else ():
            counts[rater, :, labels[rater]] += chance / chance.sum()
    assert fused.confusion_ == pytest.approx(counts / counts.sum(axis=2, keepdims=True), abs=1e-4)


def test_raters_who_favour_one_of_two_classes_are_seen_through() -> None:
    right = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 2, 100)
        # Half of the raters see every bird but take others for birds too, a third are good, and others guess.
        yes = np.array([[0.6, 0.95]] * 10 + [[0.1, 0.9]] * 6 + [[0.5, 0.5]] * 4)
        answers = (rng.random((100, 20)) < yes[:, truth].T).astype(int)
        answers[rng.random(answers.shape) > 0.3] = -1
        answers[(answers < 0).all(axis=1), 0] = 1
        right.append((SparseDawidSkene().fit(at.Annotations.from_answers(answers)).predict() == truth).mean())
    assert np.mean(right) > 0.865  # 0.880; with a prior of four labels of each class 0.853


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
