"""Methods are compared on held-out items; what was trained is kept; what cannot work is said first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import annotruth as at
from annotruth import Annotations
from annotruth.choosing import answer_lengths, cross_validation
from annotruth.choosing.trainings import Trained, Training
from annotruth.errors import InputError
from annotruth.simulate import label_group, noisy_digits, simulate_labels, simulate_masks
from annotruth.training.folds import hold_out

QUICK = {"max_epochs": 1, "accelerator": "cpu"}


@pytest.fixture(scope="module")
def digits() -> Annotations:
    images, truth, _ = noisy_digits(16)
    return simulate_masks(truth, ["good", "over", "under"]).annotations(images=images)


@pytest.fixture(scope="module")
def table() -> Annotations:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 20)
    features = np.eye(2)[truth] + rng.normal(0, 0.2, (20, 2))
    return simulate_labels(truth, label_group("hammer-spammer", 3, 2, skill=0.9)).annotations(images=features)


@pytest.fixture
def stubbed(monkeypatch: pytest.MonkeyPatch, digits: Annotations) -> list[Training]:
    """Predictions without training: "mean" tells the truth, "majority" puts it elsewhere; what was asked for."""
    asked = []
    truth = dict(zip(digits.items, digits.truth))

    def train(training: Training, annotations: Annotations) -> Trained:
        asked.append(training)
        assert not annotations.has_truth
        held_out = hold_out(annotations, training.fold, training.folds)[1]
        shift = 6 + training.seed if training.method == "majority" else 0
        predictions = [np.roll(truth[item], shift, axis=1) for item in held_out.items]
        return Trained(held_out.items, predictions, 0.1, ())

    monkeypatch.setattr(cross_validation, "train", train)
    return asked


def refuse_training(*_: object) -> Trained:
    raise AssertionError("something was trained")


@pytest.mark.usefixtures("stubbed")
def test_a_bad_method_loses_by_its_message_though_it_is_simpler(digits: Annotations) -> None:
    found = at.compare(digits._with(truth=None), ["majority", "mean"], folds=2, seeds=2, **QUICK)
    assert found.recommended == "mean"
    assert found.verdict.by == "labels"
    assert found.verdict.sure == "clear"
    assert found.known is None
    assert found.agreement is not None
    assert found.agreement[1] == 1 > found.agreement[0]


@pytest.mark.usefixtures("stubbed")
def test_known_truth_is_scored_by_and_never_learnt_from(digits: Annotations) -> None:
    found = at.compare(digits, ["majority", "mean"], folds=2, **QUICK)
    assert found.known is not None
    np.testing.assert_array_equal(found.known[1], 1)
    assert found.verdict.by == "truth"
    some = at.compare(
        digits._with(truth=None), ["majority", "mean"], folds=2, gold={"item_3": digits.truth[3]}, **QUICK
    )
    assert some.with_truth.sum() == 1


def test_what_was_trained_is_not_trained_again(
    digits: Annotations, tmp_path: Path, stubbed: list[Training], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, int, int]] = []
    first = at.compare(
        digits, ["majority", "mean"], folds=2, folder=tmp_path, progress=lambda *at: told.append(at), **QUICK
    )
    assert len(stubbed) == 4
    assert told[-1] == ("Scoring", 4, 4)
    (tmp_path / "trainings" / "mean-fold-1-seed-0.npz").unlink()  # as if it had been cut off
    again = at.compare(digits, ["majority", "mean"], folds=2, folder=tmp_path, **QUICK)
    assert [(one.method, one.fold) for one in stubbed[4:]] == [("mean", 1)]
    np.testing.assert_array_equal(again.lengths, first.lengths)
    monkeypatch.setattr(cross_validation, "train", refuse_training)
    at.compare(digits._with(truth=None), ["majority", "mean"], folds=2, folder=tmp_path, **QUICK)
    with pytest.raises(AssertionError, match="something was trained"):
        at.compare(digits, ["majority", "mean"], folds=2, folder=tmp_path, max_epochs=2)


def test_raters_are_left_out_in_turn_and_judge_what_others_taught(table: Annotations, tmp_path: Path) -> None:
    asked = {"leave_out": "raters", "max_epochs": 2, "network": "linear", "accelerator": "cpu"}
    found = at.compare(table, ["majority", "mean"], seeds=2, folder=tmp_path, **asked)
    assert sorted(path.name for path in (tmp_path / "trainings").iterdir())[0] == "majority-rater-0-seed-0.npz"
    assert len(list((tmp_path / "trainings").iterdir())) == 2 * 3 * 2
    assert found.lengths.shape == (2, 20)
    assert "Each of 3 raters was left out once, and predictions are judged by what that rater says." in found.advice
    one = Training("mean", 1, 3, 0, {}, "", "raters").split(table)
    assert one[0].raters == ("rater_1", "rater_3")
    assert one[1] is table
    # By hand: what is said by rater_2 of predictions that were learnt without it, and so on.
    by_hand = np.zeros(20)
    for number, rater in enumerate(table.raters):
        for seed in range(2):
            kept = np.load(tmp_path / "trainings" / f"mean-rater-{number}-seed-{seed}.npz")
            predicted = np.array([kept[f"item_{index}"] for index in range(20)])
            by_hand += answer_lengths(predicted, table.take_raters([rater]).answers, 2) / 2
    np.testing.assert_allclose(found.lengths[1], by_hand)


def test_raters_that_cannot_be_left_out(table: Annotations, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross_validation, "train", refuse_training)
    with pytest.raises(InputError, match="at least 3, not 2"):
        at.compare(table.take_raters(["rater_1", "rater_2"]), leave_out="raters")
    with pytest.raises(InputError, match="leave_out"):
        at.compare(table, leave_out="folds")


def test_networks_are_trained_on_masks_and_scored(digits: Annotations) -> None:
    found = at.compare(digits, ["mean", "majority"], folds=2, **QUICK)
    assert found.lengths.shape == (2, 16)
    assert np.isfinite(found.lengths).all()
    assert found.recommended in ("mean", "majority")
    assert found.table["seconds"].min() > 0


def test_networks_are_trained_on_label_tables_and_scored(table: Annotations) -> None:
    found = at.compare(table, folds=2, seeds=2, max_epochs=2, network="linear", accelerator="cpu")
    assert found.methods == ("majority", "dawid-skene", "mean", "global-cm")
    assert np.isfinite(found.lengths).all()
    assert found.table["accuracy"].between(0, 1).all()
    assert found.table["agreement"].between(0, 1).all()


def test_default_methods_that_need_overlap_are_left_out_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = np.full((12, 2), -1)
    matrix[::2, 0], matrix[1::2, 1] = [0, 1] * 3, [1, 0] * 3
    ann = Annotations.from_answers(matrix, images=np.random.default_rng(0).normal(size=(12, 2)))
    found = at.compare(ann, folds=2, max_epochs=1, network="linear", accelerator="cpu")
    assert found.methods == ("majority", "mean", "global-cm")
    assert "No item was labelled by two raters, so that dawid-skene was left out." in found.advice
    monkeypatch.setattr(cross_validation, "train", refuse_training)
    with pytest.raises(InputError, match="dawid-skene cannot weigh"):
        at.compare(ann, ["mean", "dawid-skene"], folds=2)


@pytest.mark.parametrize(("arguments", "message"), [
    ({"methods": ["mean", "nonsense"]}, "nonsense"),
    ({"methods": ["mean", "dawid-skene"]}, "does not learn from masks"),
    ({"methods": ["mean"]}, "at least two methods"),
    ({"methods": ["mean", "mean"]}, "each once"),
    ({"methods": ["mean", "clean"]}, "clean learns from the truth"),
    ({"folds": 17}, "more folds than cases, 17 and 16"),
    ({"folds": 1}, "whole number from 2"),
    ({"seeds": 0}, "at least 1"),
    ({"seed": 3}, "seed cannot be set"),
    ({"max_epochs": 0}, "max_epochs must be positive"),
    ({"network": "nonsense"}, "nonsense"),
])  # fmt: skip
def test_what_cannot_be_is_said_before_any_training(
    digits: Annotations, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], message: str
) -> None:
    monkeypatch.setattr(cross_validation, "train", refuse_training)
    with pytest.raises(InputError, match=message):
        at.compare(digits, **{"folds": 2, **arguments})


def test_crowds_that_cannot_be_compared_on_are_refused(digits: Annotations, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross_validation, "train", refuse_training)
    alone = Annotations.from_masks(digits.masks[:, :1], images=digits.images)
    with pytest.raises(InputError, match="Only rater_1 labelled anything"):
        at.compare(alone)
    with pytest.raises(InputError, match="carry none"):
        at.compare(Annotations.from_masks(digits.masks))
    few = digits.masks.copy()
    few[1:] = 255
    with pytest.raises(InputError, match="too few items are labelled"):
        at.compare(Annotations.from_masks(few, images=digits.images))


def test_a_folder_with_other_files_is_refused(digits: Annotations, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match=r"thesis\.txt"):
        at.compare(digits, ["majority", "mean"], folds=2, folder=tmp_path, **QUICK)


def test_items_of_different_size_spacing_and_group_are_scored_on_their_own_grid():
    rng = np.random.default_rng(0)
    sizes = [(16, 16), (16, 20), (24, 16), (16, 16), (20, 24), (16, 16)]
    masks = [np.zeros((2, *size), dtype=np.uint8) for size in sizes]
    for mask in masks:
        mask[0, 4:10, 4:12] = mask[1, 5:10, 4:12] = 1
    masks[2][1] = 255
    images = [mask[:1] + rng.normal(0, 0.1, (1, *mask.shape[1:])) for mask in masks]
    ann = Annotations.from_masks(
        masks, images=images, spacing=[(1, 1), (1, 1), (0.5, 1), (1, 1), (2, 2), (1, 1)], groups=list("aabbcc")
    )
    found = at.compare(ann, ["majority", "mean"], folds=3, **QUICK)
    assert np.isfinite(found.lengths).all()
    assert found.groups == tuple("aabbcc")
