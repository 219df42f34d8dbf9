"""Raters who give the same answers are found; raters who are merely good, or merely alike, are not."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from annotruth import Annotations
from annotruth.fusion import copying
from annotruth.fusion.copying import find_copies
from annotruth.simulate import label_group, simulate_labels


def answers_of(kind: str, raters: int, skill: float, classes: int = 4, items: int = 200, seed: int = 0) -> np.ndarray:
    truth = np.random.default_rng(seed).integers(0, classes, items)
    group = label_group(kind, raters, classes, skill=skill, seed=seed)
    return simulate_labels(truth, group, seed=seed).annotations().answer_matrix()


def groups_of(matrix: np.ndarray) -> list[list[int]]:
    found = find_copies(Annotations.from_answers(matrix))
    return [np.flatnonzero(found == group).tolist() for group in np.unique(found)]


@pytest.mark.parametrize("seed", range(5))
def test_copies_are_found_among_raters_of_every_kind(seed):
    alone = np.concatenate(
        [answers_of("pairwise-flipper", 2, 0.5, seed=seed), answers_of("hammer-spammer", 3, 0.9, seed=seed)], 1
    )
    slips = alone[:, 0].copy()
    slips[:2] = (slips[:2] + 1) % 4  # a copy that slips now and then
    assert groups_of(np.column_stack([alone, alone[:, 0], slips])) == [[0, 5, 6], [1], [2], [3], [4]]


@pytest.mark.parametrize("seed", range(5))
def test_good_raters_are_no_copies(seed):
    assert len(groups_of(answers_of("hammer-spammer", 6, 0.95, classes=2, items=1000, seed=seed))) == 6


def test_a_class_that_everybody_always_names_makes_no_copies():
    rare = (np.random.default_rng(0).random((400, 3)) < 0.01).astype(int)
    assert len(groups_of(rare)) == 3
    assert len(groups_of(np.zeros((50, 3), dtype=int))) == 3


def test_too_few_common_items_say_nothing():
    matrix = np.random.default_rng(0).integers(0, 3, (copying.MIN_COMMON, 1)).repeat(2, axis=1)
    assert groups_of(matrix) == [[0, 1]]
    matrix[0, 0] = -1
    assert groups_of(matrix) == [[0], [1]]


def test_kappa_is_scikit_learns(monkeypatch):
    matrix = answers_of("hammer-spammer", 2, 0.7)
    kappa = cohen_kappa_score(*matrix.T)
    for least, found in ((kappa - 1e-9, 1), (kappa + 1e-9, 2)):
        monkeypatch.setattr(copying, "MIN_KAPPA", least)
        assert len(groups_of(matrix)) == found
