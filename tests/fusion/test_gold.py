"""Gold labels in the forms users hold them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.fusion.gold import GoldMasks, gold_answers

TABLE = at.Annotations.from_answers(
    np.array([[0, 1, 1], [1, 1, 0], [0, 0, 0]]),
    items=["a", "b", "c"],
    classes=["cat", "dog"],
    truth=np.array([1, -1, 0]),
)
MASKS = at.Annotations.from_masks(np.zeros((2, 3, 4, 4), dtype=np.uint8), items=["a", "b"])


@pytest.mark.parametrize(
    "gold",
    [
        np.array([1, -1, 0]),
        {"a": "dog", "c": "cat"},
        pd.DataFrame({"item": ["c", "a", "a"], "label": ["cat", "dog", "dog"]}),
        pd.DataFrame({"item": ["c", "a", "b"], "truth": ["cat", "dog", None]}),
        "truth",
    ],
    ids=["array", "names", "table", "truth table", "own truth"],
)
def test_forms_of_gold_answers(gold: object) -> None:
    assert gold_answers(TABLE, gold).tolist() == [1, -1, 0]


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        (pd.DataFrame({"item": ["a", "a"], "label": ["cat", "dog"]}), r"contradict each other: a \(cat and dog\)"),
        ({"z": "cat"}, "do not exist: z"),
        ({"a": "cow"}, "'cow' is not among"),
        (np.array([0, 1]), "3 whole numbers"),
        (np.array([0.5, 1, 1]), "whole numbers"),
        (np.array([0, 5, -1]), "item b: 5"),
        (pd.DataFrame({"name": ["a"]}), "columns item and label"),
        ("gold", "only word"),
    ],
)
def test_wrong_gold_answers_are_refused_in_words(gold: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        gold_answers(TABLE, gold)


def test_gold_answers_that_contradict_earlier_ones() -> None:
    fused = at.MajorityVote().fit(TABLE, gold={"a": "dog"})
    with pytest.raises(InputError, match="contradict earlier ones: a"):
        fused.partial_fit(TABLE, gold={"a": "cat"})
    fused.partial_fit(TABLE, gold={"c": "dog"})
    assert fused.predict().tolist() == [1, 1, 1]


@pytest.mark.parametrize("gold", [{"b": np.ones((4, 4))}, [None, np.ones((4, 4), dtype=int)]])
def test_forms_of_gold_masks(gold: object) -> None:
    masks = GoldMasks(MASKS, gold)
    assert masks
    assert masks.read(0) is None
    assert masks.read(1).dtype == np.uint8
    assert at.MajorityVote().fit(MASKS, gold=gold).predict().mean() == 0.5


def test_own_truth_of_masks() -> None:
    masks = np.zeros((1, 3, 2, 2), dtype=np.uint8)
    annotations = at.Annotations.from_masks(masks, truth=np.array([[[1, 255], [255, 0]]], dtype=np.uint8))
    assert at.MeanLabel().fit(annotations, gold="truth").predict().tolist() == [[[1, 0], [0, 0]]]


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        ({"z": np.zeros((4, 4))}, "do not exist: z"),
        ({"a": np.zeros((5, 4))}, "Item a, gold"),
        ({"a": np.full((4, 4), 9)}, "Item a, gold: label 9"),
        ([np.zeros((4, 4))], "2 items but 1 gold"),
        (pd.DataFrame({"item": ["a"], "label": [1]}), "are masks"),
        ("truth", "carry none"),
    ],
)
def test_wrong_gold_masks_are_refused_in_words(gold: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        at.STAPLE().fit(MASKS, gold=gold)
