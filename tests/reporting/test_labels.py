"""The report on a label table: whom it ranks, what it accuses, and what it does with many raters or classes."""

from __future__ import annotations

from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.reporting import report, suspects
from annotruth.reporting.labels import label_statistics
from annotruth.reporting.words import describe_answers

Make = Callable[..., Any]


def test_posterior_by_hand(make_label_study: Make) -> None:
    model, ann = make_label_study()
    statistics = label_statistics(model, ann)
    # Item 3 looks like class 2 (0.8), and three raters who are right on 70 % call it class 0.
    weights = np.array([0.1 * 0.7**3, 0.1 * 0.15**3, 0.8 * 0.15**3])
    np.testing.assert_allclose(statistics.posterior[3], weights / weights.sum())
    np.testing.assert_array_equal(statistics.vote, [0, 1, 2, 0, -1])
    np.testing.assert_allclose(statistics.wrong[[3, 4]], [1 - weights[0] / weights.sum(), 0])
    np.testing.assert_allclose(statistics.posterior[4], statistics.predicted[4])  # nobody answered
    np.testing.assert_allclose(statistics.agreement, [1, 1, 2 / 3])
    np.testing.assert_array_equal(statistics.answered, [4, 3, 3])


def test_of_tied_answers_the_likeliest_counts(fake_classifier: Make) -> None:
    ann = at.Annotations.from_answers(np.array([[0, 1], [1, 0]]), np.array([[1.0], [0.0]]), classes=["a", "b"])
    np.testing.assert_array_equal(label_statistics(fake_classifier(ann), ann).vote, [1, 0])


def test_suspects_worst_first_and_only_answered_items(make_label_study: Make) -> None:
    model, ann = make_label_study()
    listed = suspects(model, ann)
    assert set(listed["item"]) == {"item_0", "item_1", "item_2", "item_3"}
    assert listed["item"].iloc[-1] == "item_1"  # all agree, and it looks the same
    assert dict(zip(listed["item"], listed["answer"]))["item_2"] == "<b>"
    assert listed["wrong"].is_monotonic_decreasing


def test_raters_that_the_model_does_not_know_say_nothing(make_label_study: Make) -> None:
    model, ann = make_label_study()
    model.annotators_.clear()
    np.testing.assert_allclose(label_statistics(model, ann).posterior, model.predict_proba(ann))


@pytest.mark.parametrize("shape", [(1, 6, 7), (3, 6, 7), (1, 6, 7, 3), (4,)])
def test_pictures_volumes_and_features(make_label_study: Make, tmp_path: Path, shape: tuple[int, ...]) -> None:
    model, ann = make_label_study(shape)
    page = report(model, ann, tmp_path / "r.html").read_text(encoding="utf-8")
    assert page.count('class="thumb"') == (0 if len(shape) == 1 else 4)
    assert "Items most likely mislabelled" in page
    assert all(name in unescape(page) for name in ann.classes)
    assert "<b></b>" not in page  # names are escaped
    assert "Accuracy" not in page


def test_known_truth_warnings_and_how_many_items(make_label_study: Make, tmp_path: Path) -> None:
    model, ann = make_label_study(truth=np.array([0, 1, 0, -1, 1]))
    model.warnings_ = ["Nobody ever answered fox."]
    page = report(model, ann, tmp_path / "r.html", max_cases=2).read_text(encoding="utf-8")
    assert "right on 75\u202f% of the items whose truth is known" in page
    assert "Nobody ever answered fox." in page
    assert "2 of 5 items" in page
    assert "No items were asked for" in report(model, ann, tmp_path / "r.html", max_cases=0).read_text()


def test_many_raters_and_many_classes(fake_classifier: Make, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    answers = np.full((50, 500), -1)
    for rater in range(500):
        answers[rng.choice(50, 1 + rater % 7, replace=False), rater] = rng.integers(0, 40, 1 + rater % 7)
    ann = at.Annotations.from_answers(answers, rng.integers(0, 40, (50, 1)).astype(np.float32), classes=40)
    page = report(fake_classifier(ann), ann, tmp_path / "r.html").read_text(encoding="utf-8")
    assert "400 of 500 raters are listed: those who labelled most" in page
    assert "60 of 500 raters are shown: those who labelled most" in page
    assert page.count('class="matrix"') == 60
    assert "and 10 more" in page


def test_bad_input_is_refused(make_label_study: Make, tmp_path: Path) -> None:
    model, ann = make_label_study()
    answers = ann.answer_matrix()
    with pytest.raises(InputError, match="pictures or features"):
        report(model, at.Annotations.from_answers(answers, classes=ann.classes), tmp_path / "r.html")
    with pytest.raises(InputError, match="The model knows the classes"):
        suspects(model, at.Annotations.from_answers(answers, np.zeros((5, 1)), classes=["x", "y", "z"]))
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize(
    ("confusion", "words"),
    [
        ([[1, 0, 0], [0, 0.95, 0.05], [0, 0.1, 0.9]], "answers faithfully (right on 95 %)"),
        ([[0.96, 0.02, 0.02], [0.95, 0.05, 0], [0.97, 0, 0.03]], "always answers class 0 (right on 35 %)"),
        ([[0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.35, 0.3, 0.35]], "answers as if by chance (right on 38 %)"),
        ([[1, 0, 0], [0, 0.2, 0.8], [0, 0.7, 0.3]], "swaps class 1 and class 2 (takes 80 % of class 1 for class 2 and"),
        ([[1, 0, 0], [0, 1, 0], [0, 0.3, 0.7]], "mixes up classes (takes 30 % of class 2 for class 1)"),
    ],
)
def test_habits_in_words(confusion: list[list[float]], words: str) -> None:
    assert str(describe_answers(np.array(confusion), ["0", "1", "2"], np.ones(3))).startswith(words)
