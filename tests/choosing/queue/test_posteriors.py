"""What is known of items and raters before labels are ordered."""

from __future__ import annotations

import numpy as np
import pytest

import annotruth as at
from annotruth.choosing.queue.posteriors import (
    describe_votes,
    rater_matrices,
    shared_items,
    shrink,
    slots,
    sum_rows,
    table_posteriors,
)
from annotruth.errors import InputError
from annotruth.fusion.em import confusion_from_counts


@pytest.fixture
def answers() -> np.ndarray:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 80)
    given = np.stack([np.where(rng.random(80) < s, truth, (truth + 1) % 3) for s in (0.9, 0.8, 0.6)], axis=1)
    given[rng.random(given.shape) < 0.3] = -1
    given[0] = -1
    return given


@pytest.mark.filterwarnings("ignore::annotruth.fusion.UnlabelledWarning")
def test_the_posterior_is_bayes_rule_with_the_raters_matrices(answers: np.ndarray) -> None:
    fused = at.DawidSkene().fit(at.Annotations.from_answers(answers))
    known = table_posteriors(fused)
    for item in range(len(answers)):
        expected = fused.prior_.copy()
        for rater, label in enumerate(answers[item]):
            expected = expected * (known.confusion[rater, :, label] if label >= 0 else 1)
        assert known.posterior[item] == pytest.approx(expected / expected.sum())
    assert (known.labelled(np.arange(80)) == (answers >= 0)).all()
    assert known.n_labels.tolist() == (answers >= 0).sum(axis=1).tolist()
    assert known.raters == ("rater_1", "rater_2", "rater_3")
    assert known.describe(0) == "nobody has labelled it"


@pytest.mark.filterwarnings("ignore::annotruth.fusion.UnlabelledWarning")
def test_items_of_known_truth_are_certain(answers: np.ndarray) -> None:
    known = table_posteriors(at.DawidSkene().fit(at.Annotations.from_answers(answers), gold={"item_3": "2"}))
    assert known.posterior[3].tolist() == [0, 0, 1]


def test_a_rater_who_was_right_twice_is_not_taken_for_faultless_nor_a_new_one_for_a_spammer() -> None:
    counts = np.zeros((3, 2, 2))
    counts[0] = [[40, 10], [10, 40]]
    counts[1] = [[2, 0], [0, 0]]
    found = confusion_from_counts(counts, shrink(counts))
    right = found[:, [0, 1], [0, 1]]
    assert right[0] == pytest.approx(0.8, abs=0.01)
    assert 0.8 < right[1].min() < right[1].max() < 0.95
    assert right[2] == pytest.approx(0.8, abs=0.01)
    assert found.sum(axis=2) == pytest.approx(1)


def test_an_estimator_with_a_prior_is_taken_at_its_word(answers: np.ndarray) -> None:
    fused = at.DawidSkene(confusion_prior=np.eye(3) * 500 + 1).fit(at.Annotations.from_answers(answers[1:]))
    assert rater_matrices(fused) == pytest.approx(fused.confusion_, abs=1e-3)


def test_too_many_matrices_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    fused = at.MajorityVote().fit(at.Annotations.from_answers(np.array([[0, 1]])))
    monkeypatch.setattr("annotruth.choosing.queue.posteriors.too_many_matrices", lambda raters, classes: True)
    with pytest.raises(InputError, match="2 raters and 2 classes make too many"):
        rater_matrices(fused)


def test_rows_of_items_are_found_and_summed() -> None:
    first = np.array([0, 2, 2, 5])
    assert [each.tolist() for each in slots(first, np.array([2, 1, 0]))] == [[0, 0, 0, 2, 2], [2, 3, 4, 0, 1]]
    assert sum_rows(np.arange(10.0).reshape(5, 2), first).tolist() == [[2, 4], [0, 0], [18, 21]]
    assert shared_items(np.array([0, 1, 3]), np.array([0, 0, 2]), 3).tolist() == [1, 0, 1]
    assert shared_items(np.array([0, 1, 3]), np.array([0, 0, 2]), 3, np.array([True, False])).tolist() == [2, 0, 1]


def test_votes_in_words() -> None:
    classes = ("cat", "dog", "cow", "hen")
    assert describe_votes(np.array([1, 0, 0, 0]), classes) == "the only label says cat"
    assert describe_votes(np.array([2, 1, 1, 1]), classes) == "2 of 5 say cat, 1 says dog, 1 says cow and others differ"
