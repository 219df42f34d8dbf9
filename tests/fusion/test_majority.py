"""Votes counted, with ties and gaps."""

from __future__ import annotations

import numpy as np
import pytest

import annotruth as at
from annotruth.errors import InputError


def test_mean_label_is_the_share_of_votes() -> None:
    masks = np.array([[[0, 1, 255]], [[0, 0, 1]], [[0, 1, 1]], [[0, 1, 255]]], dtype=np.uint8)
    fused = at.MeanLabel().fit(at.Annotations.from_masks(masks[None]))
    np.testing.assert_allclose(fused.predict_proba()[0, 1, 0], [0, 0.75, 1])
    assert fused.predict().tolist() == [[[0, 1, 1]]]


def test_ties_go_to_the_first_of_the_tied_classes_and_never_beyond() -> None:
    # Others give ties an "undecided" label, one past the last class, which wraps onto 0 in small types.
    masks = np.array([[[1, 2, 0]], [[2, 1, 2]]], dtype=np.uint8)
    fused = at.MajorityVote().fit(at.Annotations.from_masks(masks[None], classes=3))
    assert fused.predict().tolist() == [[[1, 1, 0]]]
    np.testing.assert_allclose(fused.predict_proba()[0, :, 0], [[0, 0, 0.5], [0.5, 0.5, 0], [0.5, 0.5, 0.5]])


def test_ties_with_254_classes() -> None:
    masks = np.array([[[253, 7]], [[252, 253]]], dtype=np.uint8)
    fused = at.MajorityVote().fit(at.Annotations.from_masks(masks[None], classes=254))
    assert fused.predict().tolist() == [[[252, 7]]]


def test_confusion_is_counted_against_the_fused_truth() -> None:
    answers = np.array([[0, 0, 0], [1, 1, 0], [1, 1, 1], [1, 0, 1]])
    fused = at.MajorityVote().fit(at.Annotations.from_answers(answers))
    np.testing.assert_allclose(fused.confusion_[2], [[1, 0], [1 / 3, 2 / 3]], atol=1e-9)
    np.testing.assert_allclose(fused.prior_, [0.25, 0.75])


def test_gold_answers_win() -> None:
    answers = at.Annotations.from_answers(np.array([[0, 0], [1, 1]]), items=["a", "b"])
    assert at.MajorityVote().fit(answers, gold={"a": 1}).predict().tolist() == [1, 1]


def test_items_without_answers_get_the_prior_and_are_flagged() -> None:
    answers = at.Annotations.from_answers(np.array([[0, 0, 0], [1, 1, 1], [1, 1, 1], [-1, -1, -1]]))
    with pytest.warns(at.fusion.UnlabelledWarning, match="item_3"):
        fused = at.MajorityVote().fit(answers)
    np.testing.assert_allclose(fused.predict_proba()[3], [1 / 3, 2 / 3])
    assert fused.unlabelled_.tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("estimator", [at.MajorityVote, at.DawidSkene])
def test_a_table_without_a_single_answer_is_nothing_to_fuse(estimator):
    with pytest.raises(InputError, match="nothing to fuse: nobody labelled any of the 3 items"):
        estimator().fit(at.Annotations.from_answers(np.full((3, 2), -1), classes=["cat", "dog"]))
