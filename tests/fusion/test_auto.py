"""A method is chosen by how well it foretells raters who were held out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.fusion.auto import LABEL_CANDIDATES, Choice, choose, held_out_bits, held_out_chances
from annotruth.fusion.checks import noisy_masks
from annotruth.fusion.folder import fuse
from annotruth.fusion.registry import make_estimator
from annotruth.fusion.votes import Votes
from annotruth.io import write_case_folder, write_table

from .crowd_kit import crowd
from .test_ibcc import few_answers


def swapping() -> tuple[at.Annotations, np.ndarray]:
    """Raters most of whom take class 2 for class 1."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 600)
    shift = np.where((truth[:, None] == 2) & (np.arange(6) < 4), rng.random((600, 6)) < 0.6, rng.random((600, 6)) < 0.1)
    return at.Annotations.from_answers(np.where(shift, (truth[:, None] + 2) % 3, truth[:, None])), truth


def spammed() -> tuple[at.Annotations, np.ndarray]:
    annotations, _, truth = crowd(400, [0.9, 0.9, 0.85] + [0.25] * 5, n_classes=4)
    return annotations, truth


CANDIDATES = [each for each in LABEL_CANDIDATES if each[0] in ("majority", "dawid-skene", "mace")]


def accuracies(annotations: at.Annotations, truth: np.ndarray) -> dict[str, float]:
    models = {str(each): make_estimator(each[0], options=each[1]) for each in CANDIDATES}
    return {name: float((model.fit(annotations).predict() == truth).mean()) for name, model in models.items()}


def accuracy(choice: Choice, annotations: at.Annotations, truth: np.ndarray) -> float:
    fused = make_estimator(choice.method, options=choice.options).fit(annotations)
    return float((fused.predict() == truth).mean())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("data", [swapping, spammed])
def test_the_choice_is_about_as_right_as_the_best(data: Callable[[], tuple[at.Annotations, np.ndarray]]) -> None:
    annotations, truth = data()
    choice = choose(annotations, CANDIDATES)
    right = accuracies(annotations, truth)
    chosen = accuracy(choice, annotations, truth)
    assert chosen >= max(right.values()) - 0.015
    assert chosen > right[str(CANDIDATES[0])] + 0.02  # the majority


@pytest.mark.filterwarnings("ignore")
def test_a_method_that_too_few_answers_mislead_is_not_chosen() -> None:
    annotations, truth = few_answers(0)
    choice = choose(annotations, CANDIDATES)
    right = accuracies(annotations, truth)
    assert accuracy(choice, annotations, truth) > right[str(("dawid-skene", {}))] + 0.05


def test_bits_are_those_of_the_formula() -> None:
    """Majority of two held against the third, by loops."""
    annotations, _, _ = crowd(40, [0.9, 0.8, 0.7])
    matrix = annotations.answer_matrix()
    votes = Votes.from_answers(annotations.answers, 40, 3, 2)
    found = held_out_bits(held_out_chances(at.MajorityVote(), votes, np.random.default_rng(5)), votes)
    rng = np.random.default_rng(5)
    rng.permutation(3)
    half, told = rng.integers(0, 2, 40), 0.0
    for rater in range(3):
        rest = np.delete(matrix, rater, axis=1)
        truth = np.stack([(rest == k).mean(axis=1) for k in (0, 1)], axis=1)
        for part in (0, 1):
            counts = np.zeros((2, 2))
            for item in np.flatnonzero(half != part):
                counts[:, matrix[item, rater]] += truth[item]
            shared = counts + 1 / 2
            counts += 10 * shared / shared.sum(axis=1, keepdims=True)
            confusion = counts / counts.sum(axis=1, keepdims=True)
            for item in np.flatnonzero(half == part):
                told -= np.log2(truth[item] @ confusion[:, matrix[item, rater]])
    assert found == pytest.approx(told / 120)


def test_masks_are_chosen_for_too_and_the_reason_is_written(tmp_path: Path) -> None:
    write_case_folder(tmp_path / "cases", at.Annotations.from_masks(noisy_masks()[0], classes=3))
    fusion = fuse(tmp_path / "cases", tmp_path / "out", "auto")
    note = json.loads((tmp_path / "out" / "fusion.json").read_text())
    assert fusion.choice is not None
    assert note["method"] == fusion.choice.method
    assert note["chosen"]["words"] == str(fusion.choice)
    assert list(note["chosen"]["bits"].values()) == sorted(note["chosen"]["bits"].values())
    assert "bits each to tell" in str(fusion.choice)


def test_tables_are_chosen_for_at_the_command_line(tmp_path: Path) -> None:
    table = write_table(tmp_path / "answers.csv", crowd(60, [0.9, 0.8, 0.7, 0.6])[0])
    assert fuse(table, tmp_path / "out", "auto").choice is not None
    with pytest.raises(InputError, match="Options belong to a method"):
        fuse(table, tmp_path / "other", "auto", options={"max_iter": 3})


def graded() -> tuple[at.Annotations, np.ndarray]:
    """Six grades, each of 300 items by four of thirty raters, who take a grade for its neighbours."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 6, 300)
    said = np.rint(truth[:, None] + rng.normal(0, 1, 30) * 0.5 + rng.normal(0, 0.9, (300, 30))).clip(0, 5).astype(int)
    asked = np.argsort(rng.random(said.shape), axis=1) < 4
    return at.Annotations.from_answers(np.where(asked, said, -1), classes=6), truth


def test_grades_are_taken_as_such_where_somebody_says_so(tmp_path: Path) -> None:
    annotations, truth = graded()
    candidates = [("majority", {}), ("dawid-skene", {}), ("mace", {})]
    assert "ordinal-dawid-skene, ordered=True" not in choose(annotations, candidates).bits
    choice = choose(annotations, candidates, ordered=True)
    heaviest = max(choice.options["members"], key=lambda member: member[2])
    assert heaviest[0] == "ordinal-dawid-skene"
    right = [
        (make_estimator(method, options=options).fit(annotations).predict() == truth).mean()
        for method, options in candidates
    ]
    assert accuracy(choice, annotations, truth) > max(right)
    table = write_table(tmp_path / "answers.csv", annotations)
    fusion = fuse(table, tmp_path / "out", "auto", options={"ordered": True})
    assert fusion.choice is not None
    assert "ordinal-dawid-skene, ordered=True" in fusion.choice.bits
    with pytest.raises(InputError, match="in their order, or is true; found 3"):
        fuse(table, tmp_path / "other", "auto", options={"ordered": 3})


def test_methods_that_cannot_take_the_labels_are_named_with_the_reason() -> None:
    annotations, _, _ = crowd(60, [0.9, 0.8, 0.7], n_classes=3)
    choice = choose(annotations, [("kos", {}), ("majority", {})])
    assert choice.method == "majority"
    assert "two classes" in choice.refused["kos"]


def test_two_raters_are_too_few() -> None:
    with pytest.raises(InputError, match=r"raters are held out in turn, and there are 2\. Name a method"):
        choose(crowd(10, [0.9, 0.8])[0])


def test_items_of_one_answer_each_hold_nobody_out() -> None:
    alone = at.Annotations.from_answers(np.where(np.arange(12)[:, None] % 3 == np.arange(3), 1, -1), classes=2)
    with pytest.raises(InputError, match="No item was labelled by several raters"):
        choose(alone, CANDIDATES)


def test_of_methods_that_foretell_the_same_the_simplest_is_taken() -> None:
    choice = choose(at.Annotations.from_answers(np.zeros((6, 4), dtype=int), classes=1), CANDIDATES)
    assert choice.method == "majority"
