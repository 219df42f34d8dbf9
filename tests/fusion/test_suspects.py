"""Guessing and copying raters are told of where a label table is fused, and nobody else is."""

from __future__ import annotations

import numpy as np

from annotruth import Annotations
from annotruth.errors import CopiesWarning, SpammerWarning
from annotruth.fusion import DawidSkene, suspects
from annotruth.fusion.suspects import suspect_raters
from annotruth.simulate import hammer_spammer, simulate_labels


def told_of(matrix: np.ndarray) -> list[tuple[type, str]]:
    annotations = Annotations.from_answers(matrix, classes=3)
    fused = DawidSkene().fit(annotations)
    found = suspect_raters(annotations, fused.prior_, fused.confusion_)
    return [(type(each), str(each).split(": ")[0].split(" give")[0]) for each in found]


def crowd(*skills: float) -> np.ndarray:
    truth = np.random.default_rng(0).integers(0, 3, 120)
    return (
        simulate_labels(truth, np.stack([hammer_spammer(3, skill) for skill in skills])).annotations().answer_matrix()
    )


def test_ordinary_raters_are_left_in_peace():
    assert told_of(crowd(0.9, 0.8, 0.7, 0.6, 0.85)) == []


def test_who_guesses_and_who_copies():
    matrix = crowd(0.9, 0.9, 0.85, 0.0, 0.5)
    copied = matrix[:, [0, 1, 2, 3, 4, 4]]
    assert told_of(copied) == [(SpammerWarning, "rater_4"), (CopiesWarning, "rater_5, rater_6")]


def test_one_class_against_others_and_very_large_tables_are_not_looked_at(monkeypatch):
    annotations = Annotations.from_answers(crowd(0.9, 0.9, 0.0), classes=3)
    matrices = np.stack([np.eye(2)] * 3)
    assert suspect_raters(annotations, np.array([0.5, 0.5]), matrices) == []
    monkeypatch.setattr(suspects, "MOST_NUMBERS", 10)
    assert suspect_raters(annotations, np.full(3, 1 / 3), np.stack([np.eye(3)] * 3)) == []
