"""Raters of a few kinds, who share the matrix of their kind."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import digamma

from annotruth import IBCC, Annotations, ClusteredDawidSkene, DawidSkene, MajorityVote
from annotruth.errors import InputError

from .crowd_kit import crowd

N_CLASSES = 4
KINDS = [np.eye(N_CLASSES) * 0.8 + 0.05, np.full((4, 4), 0.25), np.eye(N_CLASSES)[[0, 0, 2, 2]] * 0.8 + 0.05]


def _few_answers_a_rater(n_items: int, n_raters: int, answers: int, seed: int = 0) -> tuple[Annotations, ...]:
    """Raters who are careful, guess, or cannot tell classes apart; the truth (items,) and their kinds (raters,)."""
    rng = np.random.default_rng(seed)
    truth, kind = rng.integers(0, N_CLASSES, n_items), rng.integers(0, len(KINDS), n_raters)
    said = np.full((n_items, n_raters), -1)
    for rater in range(n_raters):
        for item in rng.choice(n_items, answers, replace=False):
            said[item, rater] = rng.choice(N_CLASSES, p=KINDS[kind[rater]][truth[item]])
    return Annotations.from_answers(said), truth, kind


@pytest.mark.filterwarnings("ignore::annotruth.errors.AnnotruthWarning", "ignore:.*did not settle")
def test_few_answers_a_rater_tell_the_kinds_and_more_of_the_truth_than_a_matrix_each() -> None:
    annotations, truth, kind = _few_answers_a_rater(400, 200, 12)
    fused = ClusteredDawidSkene().fit(annotations)
    right = (fused.predict() == truth).mean()
    for other in (MajorityVote(), DawidSkene(), IBCC()):
        assert right > (other.fit(annotations).predict() == truth).mean() + 0.05
    found = fused.membership_.argmax(axis=1)
    same = (found[:, None] == found) == (kind[:, None] == kind)
    assert same.mean() > 0.85
    assert fused.membership_[:, 3].sum() < 1, "a fourth kind is not needed"
    assert np.abs(fused.cluster_confusion_[:3, None] - KINDS).max(axis=(2, 3)).min(axis=1).max() < 0.15


@pytest.mark.filterwarnings("ignore:.*did not settle")
def test_what_is_found_satisfies_the_equations_written_out_one_by_one() -> None:
    annotations, _, _ = crowd(60, [0.95, 0.9, 0.9, 0.5, 0.45, 0.4], 3, keep=0.8)
    fused = ClusteredDawidSkene(clusters=2, max_iter=3000, tol=0).fit(annotations)
    answers, posterior, state = annotations.answer_matrix(), fused.predict_proba(), fused.state_
    n_items, n_raters = answers.shape
    prior = np.full((3, 3), 0.5) + 1.5 * np.eye(3)
    counts = np.zeros((n_raters, 3, 3))
    for item, rater in np.argwhere(answers >= 0):
        counts[rater, :, answers[item, rater]] += posterior[item]
    labels = prior + sum(state.membership[r][:, None, None] * counts[r] for r in range(n_raters))
    logs = digamma(labels) - digamma(labels.sum(axis=2, keepdims=True))
    sizes = 0.5 + state.membership.sum(axis=0)
    classes = digamma(1 + posterior.sum(axis=0))
    for rater in range(n_raters):
        told = np.array([digamma(sizes[k]) + (counts[rater] * logs[k]).sum() for k in range(2)])
        told = np.exp(told - told.max())
        np.testing.assert_allclose(state.membership[rater], told / told.sum(), atol=1e-5)
    for item in range(n_items):
        told = classes.copy()
        for rater in np.flatnonzero(answers[item] >= 0):
            for k in range(2):
                told += state.membership[rater, k] * logs[k, :, answers[item, rater]]
        told = np.exp(told - told.max())
        np.testing.assert_allclose(posterior[item], told / told.sum(), atol=1e-5)


def test_raters_who_come_later_are_put_into_the_kinds_that_are_known() -> None:
    annotations, _, truth = crowd(120, [0.9, 0.9, 0.9, 0.5, 0.5], 2, seed=2)
    fused = ClusteredDawidSkene(clusters=2).fit(annotations)
    late = Annotations.from_answers(truth[:, None], items=annotations.items, raters=["late"], classes=2)
    fused.partial_fit(late)
    assert fused.membership_.shape == (6, 2)
    assert fused.membership_[5].argmax() == fused.membership_[0].argmax()


def test_no_kinds_are_refused() -> None:
    with pytest.raises(InputError, match="clusters must be at least 1, found 0"):
        ClusteredDawidSkene(clusters=0).fit(crowd(5, [0.9, 0.8])[0])
