"""What a comparison found becomes a table and advice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from annotruth.choosing import Comparison

ITEMS = 12
RNG = np.random.default_rng(0)
NOISE = RNG.normal(0, 1, (2, ITEMS))
FOUND = Comparison(
    "masks", tuple(f"case_{number}" for number in range(ITEMS)), None, ("majority", "pixel-cm"), 2, 2,
    np.ones(ITEMS, dtype=bool), np.array([[60.0], [50.0]]) + NOISE, np.full(ITEMS, 100.0), np.zeros(2, dtype=bool),
    np.array([0.9, 0.8]), None,
    np.array([1.0, 2.0]), {},
)  # fmt: skip


def with_truth(known: int, scores: tuple[float, float]) -> Comparison:
    values = np.full((2, ITEMS), np.nan)
    values[:, :known] = np.array(scores)[:, None] + 0.001 * NOISE[:, :known]
    return replace(FOUND, known=values)


def test_without_truth_the_shorter_message_decides():
    assert FOUND.recommended == "pixel-cm"
    assert FOUND.verdict.by == "labels"
    table = FOUND.table
    assert table["method"].tolist() == ["pixel-cm", "majority"]
    assert table["behind"].tolist() == pytest.approx([0, 10], abs=1)
    assert table["shorter"].tolist() == pytest.approx([0.5, 0.4], abs=0.01)
    assert "dice" not in table


def test_enough_known_truth_decides_and_says_that_labels_would_not_have():
    found = with_truth(ITEMS, (0.9, 0.8))
    assert found.recommended == "majority"
    assert "everybody's labels would have spoken for pixel-cm" in " ".join(found.advice)
    assert found.table["method"].tolist() == ["majority", "pixel-cm"]


def test_little_known_truth_is_shown_but_does_not_decide():
    found = with_truth(3, (0.9, 0.8))
    assert found.recommended == "pixel-cm"
    assert "The truth is known of 3 items, too few to decide by." in found.advice
    assert found.table["dice"].tolist() == pytest.approx([0.8, 0.9], abs=0.01)


def test_items_of_one_patient_are_not_enough_to_decide_by():
    found = replace(with_truth(ITEMS, (0.9, 0.8)), groups=tuple("ab" * (ITEMS // 2)))
    assert found.verdict.by == "labels"


def test_a_method_that_swaps_classes_is_not_taken_unless_all_do():
    found = replace(FOUND, swapped=np.array([False, True]))
    assert found.recommended == "majority"
    assert "Careful: most labels call the classes that pixel-cm predicted by other names" in " ".join(found.advice)
    assert found.table["method"].tolist() == ["majority", "pixel-cm"]
    assert replace(FOUND, swapped=np.ones(2, dtype=bool)).recommended == "pixel-cm"


def test_advice_warns_where_predictions_tell_nothing():
    found = replace(FOUND, baseline=np.full(ITEMS, 50.0) + NOISE[1])
    assert any(sentence.startswith("Careful: ") for sentence in found.advice)
    assert not any(sentence.startswith("Careful: ") for sentence in FOUND.advice)


def test_advice_tells_of_one_seed_and_of_warnings():
    told = " ".join(replace(FOUND, seeds=1, warned={"pixel-cm": ("Raters cannot be told apart.",)}).advice)
    assert "Each training was done once" in told
    assert "Trainings of pixel-cm warned: Raters cannot be told apart." in told


def test_items_nobody_labelled_do_not_count():
    labelled = np.arange(ITEMS) < 8
    lengths = np.where(labelled, FOUND.lengths, 0)
    found = replace(FOUND, labelled=labelled, lengths=lengths)
    assert found.table["message"].tolist() == pytest.approx([50, 60], abs=1.5)
