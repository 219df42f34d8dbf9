"""Raters who copy are told from raters who are right, from twenty answers each."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from annotruth import Annotations
from annotruth.errors import InputError
from annotruth.fusion import DawidSkene
from annotruth.fusion.copied_pairs import find_copied_pairs
from annotruth.simulate import hammer_spammer, simulate_labels


def crowd_with_copies(seed: int, copied: float = 0.9) -> tuple[Annotations, set[tuple[str, str]]]:
    """Fifty raters, twenty answers each, ten to an item; ten of them copy most answers of the one before them."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, 100)
    matrices = np.stack([hammer_spammer(4, rng.uniform(0.4, 0.9)) for _ in range(50)])
    answers = simulate_labels(truth, matrices, seed=seed).answers.astype(np.int64)
    there = np.zeros(answers.shape, dtype=bool)
    for block in range(5):  # ten raters to each fifth of the items
        there[20 * block : 20 * block + 20, 10 * block : 10 * block + 10] = True
    copies = [10 * block + place for block in range(5) for place in (3, 7)]
    for one in copies:
        same = rng.random(100) < copied
        answers[same, one] = answers[same, one - 1]
    made = Annotations.from_answers(np.where(there, answers, -1))
    return made, {(made.raters[one - 1], made.raters[one]) for one in copies}


@pytest.mark.filterwarnings("ignore::annotruth.errors.IdentifiabilityWarning")
def test_copies_with_twenty_answers_each_are_found() -> None:
    scores, truly = [], []
    for seed in range(3):
        annotations, copies = crowd_with_copies(seed)
        fused = DawidSkene().fit(annotations)
        found = find_copied_pairs(annotations, fused.prior_, fused.confusion_)
        scores.append(np.log(found.table["evidence"]))
        truly.append([pair in copies for pair in zip(found.table["first"], found.table["second"])])
        assert len(found.table) == 5 * 45
        assert len(set(found.pairs) - copies) <= 1
        assert len(set(found.pairs) & copies) >= 4
    assert roc_auc_score(np.concatenate(truly), np.concatenate(scores)) > 0.95


def test_raters_who_answer_for_themselves_are_hardly_ever_called_copies() -> None:
    truth = np.random.default_rng(0).integers(0, 3, 30)
    matrices = np.stack([hammer_spammer(3, 0.6)] * 40)
    for seed in range(3):
        annotations = simulate_labels(truth, matrices, seed=seed).annotations()
        found = find_copied_pairs(annotations, np.full(3, 1 / 3), matrices)
        assert found.pairs == ()
        assert (found.table["chance"] <= 0.01).mean() <= 0.01
        # About as many answers are the same as are expected to be; a twentieth of them may be anything, for caution.
        assert found.table["same"].mean() == pytest.approx(found.table["expected"].mean(), rel=0.12)


def test_few_common_items_tell_nothing() -> None:
    annotations = Annotations.from_answers(np.array([[0, 0], [1, 1], [0, 0]]))
    found = find_copied_pairs(annotations, np.full(2, 0.5), np.tile(np.eye(2), (2, 1, 1)))
    assert len(found.table) == 0
    assert found.pairs == ()
    with pytest.raises(InputError, match="level is a probability"):
        find_copied_pairs(annotations, np.full(2, 0.5), np.tile(np.eye(2), (2, 1, 1)), level=2)
