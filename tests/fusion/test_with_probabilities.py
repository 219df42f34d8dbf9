"""Raters' answers around a classifier's probabilities."""

from __future__ import annotations

import numpy as np
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.fusion.checks import noisy_masks


def make(seed: int = 0, n_items: int = 1500, sureness: float = 1.0) -> tuple[np.ndarray, at.Annotations, np.ndarray]:
    """A calibrated classifier's probabilities raised to a power, two answers an item of six raters, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n_items)
    logits = rng.normal(0, 1, (n_items, 3)) + 1.2 * np.eye(3)[truth]  # whose softmax of 1.2 × them is calibrated
    powers = np.exp(1.2 * sureness * logits)
    wrong = (truth[:, None] + rng.integers(1, 3, (n_items, 6))) % 3
    answers = np.where(rng.random((n_items, 6)) < [0.85, 0.8, 0.7, 0.6, 0.5, 0.9], truth[:, None], wrong)
    answers[np.argsort(rng.random((n_items, 6)), axis=1) >= 2] = -1
    return powers / powers.sum(axis=1, keepdims=True), at.Annotations.from_answers(answers), truth


def test_both_together_are_better_than_either() -> None:
    probabilities, annotations, truth = make()
    fused = at.fuse_with(probabilities, annotations)
    alone = max((at.DawidSkene().fit(annotations).predict() == truth).mean(), (probabilities.argmax(1) == truth).mean())
    assert (fused.predict() == truth).mean() > alone + 0.03
    assert fused.classifier_skill_ == pytest.approx((probabilities.argmax(axis=1) == truth).mean(), abs=0.04)
    np.testing.assert_allclose(fused.skill_, [0.85, 0.8, 0.7, 0.6, 0.5, 0.9], atol=0.07)


@pytest.mark.parametrize("sureness", [0.5, 1.0, 3.0])
def test_a_classifier_that_is_too_sure_is_blunted(sureness: float) -> None:
    probabilities, annotations, _ = make(n_items=4000, sureness=sureness)
    assert at.fuse_with(probabilities, annotations).sharpness_ == pytest.approx(1 / sureness, rel=0.2)


def test_posterior_is_that_of_bayes_rule_by_hand() -> None:
    probabilities, annotations, _ = make(n_items=60)
    fused, matrix = at.fuse_with(probabilities, annotations), annotations.answer_matrix()
    expected = probabilities**fused.sharpness_
    for item, rater in zip(*np.nonzero(matrix >= 0)):
        expected[item] *= fused.confusion_[rater, :, matrix[item, rater]]
    np.testing.assert_allclose(fused.predict_proba(), expected / expected.sum(axis=1, keepdims=True), atol=1e-6)


def test_an_item_without_answers_has_the_classifiers_word() -> None:
    probabilities, annotations, _ = make(n_items=50)
    matrix = annotations.answer_matrix()
    matrix[0] = -1
    with pytest.warns(at.fusion.UnlabelledWarning):
        fused = at.fuse_with(probabilities, at.Annotations.from_answers(matrix, classes=3))
    assert fused.predict()[0] == probabilities[0].argmax()


def test_gold_labels_and_intervals_work_as_in_other_estimators() -> None:
    probabilities, annotations, truth = make(n_items=200)
    fused = at.fusion.with_probabilities.FusedWith(probabilities).fit(annotations, gold=np.where(truth == 1, 1, -1))
    assert (fused.predict()[truth == 1] == 1).all()
    low, high = fused.skill_interval()
    assert ((low < fused.skill_) & (fused.skill_ < high)).all()


def test_probabilities_that_do_not_fit_are_refused() -> None:
    probabilities, annotations, _ = make(n_items=20)
    with pytest.raises(InputError, match=r"of 20 items and 3 classes, in the annotations' order, not \(19, 3\)"):
        at.fuse_with(probabilities[1:], annotations)
    probabilities[7] *= 2
    with pytest.raises(InputError, match="Item item_7: its 3 probabilities must be at least 0 and sum to 1"):
        at.fuse_with(probabilities, annotations)
    with pytest.raises(InputError, match="takes a label table"):
        at.fuse_with(probabilities, at.Annotations.from_masks(noisy_masks()[0]))
    with pytest.raises(InputError, match="all items at once"):
        at.fuse_with(make(n_items=20)[0], annotations).partial_fit(annotations)
