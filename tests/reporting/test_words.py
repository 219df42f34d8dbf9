"""Confusion matrices and scores in words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotruth.reporting.words import describe, heading, percent, score, short

TWO, SHARES = ["background", "lesion"], np.array([0.8, 0.2])


@pytest.mark.parametrize(
    ("confusion", "words"),
    [
        ([[0.99, 0.01], [0.03, 0.97]], "draws faithfully (finds 97 % of lesion; 1 % of background is called lesion)"),
        (
            [[0.79, 0.21], [0.02, 0.98]],
            "draws too much (finds 98 % of lesion, but 21 % of background is called lesion)",
        ),
        ([[0.96, 0.04], [0.0, 1.0]], "draws too much (finds 100 % of lesion, but adds 16 % to its area)"),
        ([[1.0, 0.0], [0.55, 0.45]], "draws too little (finds only 45 % of lesion)"),
        (
            [[0.9, 0.1], [0.4, 0.6]],
            "misses and adds (finds only 60 % of lesion, and 10 % of background is called lesion)",
        ),
        ([[1.0, 0.0], [1.0, 0.0]], "marks almost nothing (finds 0 % of lesion)"),
        ([[0.0, 1.0], [0.0, 1.0]], "marks almost everything (100 % of background is called lesion)"),
        (
            [[0.2, 0.8], [0.9, 0.1]],
            "swaps background and lesion (finds only 10 % of lesion, but 80 % of background is called lesion)",
        ),
        (
            [[0.5, 0.5], [0.5, 0.5]],
            "answers as if by chance (finds 50 % of lesion, and 50 % of background is called lesion)",
        ),
    ],
)
def test_two_classes_in_words(confusion: list[list[float]], words: str) -> None:
    assert str(describe(np.array(confusion), TWO, SHARES)) == words


def test_a_small_share_of_a_large_background_is_much_for_a_small_lesion() -> None:
    confusion = np.array([[0.98, 0.02], [0.0, 1.0]])
    assert describe(confusion, TWO, np.array([0.5, 0.5])).kind == "draws faithfully"
    assert describe(confusion, TWO, np.array([0.95, 0.05])).kind == "draws too much"


def test_several_classes_in_words() -> None:
    classes, shares = ["background", "tumour", "oedema"], np.array([0.6, 0.2, 0.2])
    swap = np.array([[1, 0, 0], [0, 0.1, 0.9], [0, 0.8, 0.2]])
    assert describe(swap, classes, shares).kind == "swaps tumour and oedema"
    some = np.array([[1, 0, 0], [0, 0.69, 0.31], [0, 0, 1]])
    assert describe(some, classes, shares) == ("mixes up classes", "takes 31 % of tumour for oedema")
    both = np.array([[1, 0, 0], [0.5, 0.2, 0.3], [0.4, 0, 0.6]])
    assert describe(both, classes, shares).kind == "draws too little and mixes up classes"


def test_numbered_classes_read_as_classes() -> None:
    assert "of class 1" in describe(np.eye(2), ["0", "1"], SHARES).detail


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_every_confusion_matrix_gets_words(n_classes: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    confusion = generator.dirichlet(np.full(n_classes, 0.3), size=n_classes)
    shares = generator.dirichlet(np.full(n_classes, 0.2))
    habit = describe(confusion, [f"c{i}" for i in range(n_classes)], shares)
    assert habit.kind
    assert "nan" not in str(habit)


def test_no_percentage_claims_all_or_nothing_falsely() -> None:
    assert [percent(v) for v in (0, 0.0004, 0.5, 0.9996, 1)] == [
        "0 %",
        "<1 %",
        "50 %",
        ">99 %",
        "100 %",
    ]


@pytest.mark.parametrize("most", [5, 8, 9])
def test_short_names_have_the_length_asked_for(most: int) -> None:
    assert len(short("a very long name", most)) == most
    assert short("tiny", most) == "tiny"


def test_titles_and_arrows_come_from_the_record_or_else_from_words_of_the_name() -> None:
    shown = [
        heading(name) for name in ("dice", "confusion_rmse", "margin", "vote_entropy", "surface-distance", "CM_loss")
    ]
    assert shown == ["foreground Dice ↑", "CM RMSE ↓", "dominance ↑", "vote entropy", "surface-distance ↓", "CM_loss ↓"]
    assert heading("mystery") == "mystery"


def test_scores_are_written_as_the_record_says() -> None:
    assert [score(0.12345, name) for name in ("dice", "margin", "mystery")] == ["0.1235", "+0.12", "0.123"]
    assert score(float("nan"), "dice") == score(None, "mystery") == "–"
