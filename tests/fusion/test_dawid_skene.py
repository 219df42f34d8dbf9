"""Dawid-Skene against crowd-kit, and its options."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

import annotruth as at
from annotruth.errors import IdentifiabilityWarning, InputError


def crowd(n_items: int = 300, n_raters: int = 12, n_classes: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Sparse answers (items, raters), -1 = missing, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_items)
    skill = rng.uniform(0.4, 0.95, n_raters)
    answers = np.where(
        rng.random((n_items, n_raters)) < skill, truth[:, None], rng.integers(0, n_classes, (n_items, n_raters))
    )
    answers[rng.random(answers.shape) < 0.5] = -1
    answers[(answers >= 0).sum(axis=1) == 0, 0] = 0
    return answers, truth


def long_frame(answers: np.ndarray) -> pd.DataFrame:
    item, rater = np.nonzero(answers >= 0)
    return pd.DataFrame({"task": item, "worker": rater, "label": answers[item, rater]})


@pytest.mark.parametrize("one_coin", [False, True])
@pytest.mark.parametrize("n_iter", [1, 5, 20])
def test_same_posteriors_as_crowd_kit(one_coin: bool, n_iter: int) -> None:
    aggregation = pytest.importorskip("crowdkit.aggregation")
    answers, _ = crowd()
    fused = at.DawidSkene(max_iter=n_iter, tol=0, one_coin=one_coin)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fused.fit(at.Annotations.from_answers(answers))
    peer = (aggregation.OneCoinDawidSkene if one_coin else aggregation.DawidSkene)(n_iter=n_iter, tol=-1e9)
    expected = peer.fit_predict_proba(long_frame(answers)).sort_index().sort_index(axis=1)
    np.testing.assert_allclose(fused.predict_proba(), expected.to_numpy(), atol=1e-6)


def test_code_for_many_answers_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    annotations = at.Annotations.from_answers(crowd()[0], classes=4)
    gold = np.where(np.arange(300) < 20, crowd()[1], -1)
    usual = at.DawidSkene().fit(annotations, gold=gold)
    monkeypatch.setattr("annotruth.fusion.em._MIN_UNROLLED_ANSWERS", 0)
    unrolled = at.DawidSkene().fit(annotations, gold=gold)
    np.testing.assert_allclose(unrolled.confusion_, usual.confusion_, atol=1e-9)
    np.testing.assert_allclose(unrolled.log_likelihood_, usual.log_likelihood_, rtol=1e-12)


def test_beats_majority_and_finds_the_raters() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 2000)
    skills = np.array([0.95, 0.9, 0.5, 0.4, 0.4])
    answers = np.where(rng.random((2000, 5)) < skills, truth[:, None], rng.integers(0, 3, (2000, 5)))
    annotations = at.Annotations.from_answers(answers)
    fused, vote = at.DawidSkene().fit(annotations), at.MajorityVote().fit(annotations)
    assert (fused.predict() == truth).mean() > (vote.predict() == truth).mean() + 0.02
    np.testing.assert_allclose(fused.skill_, skills + (1 - skills) / 3, atol=0.04)
    low, high = fused.skill_interval(0.99)
    assert ((low < skills + (1 - skills) / 3) & (skills + (1 - skills) / 3 < high)).all()


def test_tables_and_masks_agree() -> None:
    answers, _ = crowd()
    masks = np.where(answers < 0, 255, answers).astype(np.uint8).T[None]
    table, picture = at.DawidSkene().fit(at.Annotations.from_answers(answers)), at.DawidSkene()
    picture.fit(at.Annotations.from_masks(masks))
    np.testing.assert_allclose(picture.predict_proba()[0].T, table.predict_proba(), atol=1e-6)
    np.testing.assert_allclose(picture.confusion_, table.confusion_, atol=1e-9)


def test_gold_items_teach_who_is_right() -> None:
    # Two raters who always differ: only gold items can tell them apart.
    answers = np.array([[0, 1], [1, 0]] * 10)
    annotations = at.Annotations.from_answers(answers)
    gold = np.full(20, -1)
    gold[:4] = answers[:4, 0]
    fused = at.DawidSkene().fit(annotations, gold=gold)
    assert fused.predict().tolist() == answers[:, 0].tolist()
    with pytest.warns(IdentifiabilityWarning, match="Only two raters"):
        at.DawidSkene().fit(annotations)


def test_prior_matrices_teach_who_is_right() -> None:
    answers = np.array([[0, 1], [1, 0]] * 10)
    annotations = at.Annotations.from_answers(answers, raters=["ann", "bob"])
    trusted = {"bob": np.array([[50, 1], [1, 50]])}
    assert at.DawidSkene(confusion_prior=trusted).fit(annotations).predict().tolist() == answers[:, 1].tolist()


def test_prior_matrices_hold_back_raters_with_few_answers() -> None:
    answers, _ = crowd()
    answers[1:, -1] = -1
    answers[0, -1] = 0
    loose = at.DawidSkene().fit(at.Annotations.from_answers(answers))
    held = at.DawidSkene(confusion_prior=np.full((4, 4), 0.25) + np.eye(4)).fit(at.Annotations.from_answers(answers))
    assert np.abs(held.confusion_[-1] - 0.25).max() < 0.6 < np.abs(loose.confusion_[-1] - 0.25).max()


@pytest.mark.filterwarnings("ignore:.*No rater is faithful on 1")
def test_prior_fixed_or_estimated() -> None:
    rng = np.random.default_rng(0)
    truth = (rng.random(3000) < 0.1).astype(int)
    answers = np.where(rng.random((3000, 4)) < 0.7, truth[:, None], 1 - truth[:, None])
    annotations = at.Annotations.from_answers(answers)
    estimated = at.DawidSkene(max_iter=1000).fit(annotations)
    np.testing.assert_allclose(estimated.prior_, [0.9, 0.1], atol=0.04)
    votes = at.DawidSkene(prior="votes", max_iter=1000).fit(annotations)
    np.testing.assert_allclose(votes.prior_, [1 - answers.mean(), answers.mean()])
    given = at.DawidSkene(prior=np.array([0.8, 0.2]), max_iter=1000).fit(annotations)
    assert given.prior_.tolist() == [0.8, 0.2]


def test_warns_when_iterations_run_out() -> None:
    annotations = at.Annotations.from_answers(crowd()[0])
    with pytest.warns(ConvergenceWarning, match="did not settle"):
        at.DawidSkene(max_iter=2).fit(annotations)
    assert at.DawidSkene().fit(annotations).n_iter_ < 100


def test_partial_fit_adds_items_answers_and_raters() -> None:
    answers, _ = crowd(n_items=600)
    frame = long_frame(answers).rename(columns={"task": "item", "worker": "rater"})
    classes = ["0", "1", "2", "3"]
    whole = at.DawidSkene(tol=1e-9, max_iter=1000).fit(at.Annotations.from_table(frame, classes=classes))
    grown = at.DawidSkene(tol=1e-9, max_iter=1000)
    by_rater = frame[frame["rater"] < 8], frame[(frame["rater"] >= 8) & (frame["item"] < 300)]
    for part in (*by_rater, frame[(frame["rater"] >= 8) & (frame["item"] >= 300)]):
        grown.partial_fit(at.Annotations.from_table(part, classes=classes))
    order = [grown.items_.index(item) for item in whole.items_]
    raters = [grown.raters_.index(rater) for rater in whole.raters_]
    np.testing.assert_allclose(grown.predict_proba()[order], whole.predict_proba(), atol=1e-3)
    np.testing.assert_allclose(grown.confusion_[raters], whole.confusion_, atol=1e-3)
    assert grown.n_iter_ <= whole.n_iter_


def test_partial_fit_lets_a_new_class_appear() -> None:
    rng = np.random.default_rng(0)
    first = np.repeat(rng.integers(0, 2, 50)[:, None], 4, axis=1)
    later = np.repeat(np.full(50, 2)[:, None], 4, axis=1)
    names = [f"later_{i}" for i in range(50)]
    fused = at.DawidSkene().fit(at.Annotations.from_answers(first, classes=3))
    fused.partial_fit(at.Annotations.from_answers(later, classes=3, items=names))
    assert (fused.predict()[50:] == 2).all()


def test_partial_fit_refuses_contradictions_and_stays_as_it_was() -> None:
    fused = at.DawidSkene().fit(at.Annotations.from_answers(np.array([[0, 0, 0], [1, 1, 1]])))
    before = fused.predict_proba()
    with pytest.raises(InputError, match="item_0 by rater_2"):
        fused.partial_fit(at.Annotations.from_answers(np.array([[0, 1, 0]])))
    with pytest.raises(InputError, match="classes must stay"):
        fused.partial_fit(at.Annotations.from_answers(np.array([[0, 2, 0]])))
    with pytest.raises(InputError, match="do not mix"):
        fused.partial_fit(at.Annotations.from_masks(np.zeros((1, 3, 4, 4), dtype=np.uint8)))
    np.testing.assert_array_equal(fused.predict_proba(), before)


def test_one_class_is_no_question() -> None:
    fused = at.DawidSkene().fit(at.Annotations.from_answers(np.zeros((4, 3), dtype=int)))
    assert fused.predict().tolist() == [0, 0, 0, 0]
    assert fused.predict_proba().tolist() == [[1.0]] * 4


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"max_iter": 0}, "max_iter"),
        ({"tol": -1.0}, "tol"),
        ({"scope": "world"}, "Known: dataset, case"),
        ({"scope": "case"}, "needs masks"),
        ({"prior": "flat"}, "Known: estimated, votes"),
        ({"prior": np.array([0.5, 0.2])}, "sum to 1"),
        ({"prior": np.array([1.0])}, "each of the 2 classes"),
        ({"confusion_prior": np.eye(3)}, "2×2"),
        ({"confusion_prior": -np.eye(2)}, "at least 0"),
        ({"confusion_prior": np.ones((4, 2, 2))}, "shape"),
        ({"confusion_prior": {"zoe": np.eye(2)}}, "zoe"),
    ],
)
def test_wrong_parameters_are_refused_in_words(wrong: dict[str, object], message: str) -> None:
    annotations = at.Annotations.from_answers(np.array([[0, 1, 1], [1, 1, 1]]))
    with pytest.raises(InputError, match=message):
        at.DawidSkene(**wrong).fit(annotations)
