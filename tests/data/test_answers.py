"""Answers in long form: order, duplicates, and mistakes named by row, item and rater."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotruth.data.answers import (
    MAX_TABLE_CLASSES,
    answers_from_frame,
    answers_from_matrix,
    name_classes,
    sort_answers,
)
from annotruth.errors import InputError


def _frame(*rows):
    return pd.DataFrame(rows, columns=["item", "rater", "label"])


@settings(max_examples=30, deadline=None)
@given(pairs=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), unique=True, max_size=30))
def test_answers_are_sorted_compact_and_complete(pairs):
    item, rater = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    answers = sort_answers(item, rater, (item * 5 + rater) % 7)
    assert (answers.item.dtype, answers.rater.dtype, answers.label.dtype) == (np.int32, np.int32, np.int16)
    assert list(zip(answers.item, answers.rater)) == sorted(pairs)
    np.testing.assert_array_equal(answers.label, (answers.item * 5 + answers.rater) % 7)


def test_matrix_there_and_back():
    matrix = np.random.default_rng(0).integers(-1, 5, (8, 3))
    answers, n_classes = answers_from_matrix(matrix, None)
    assert n_classes == 5
    assert len(answers) == (matrix >= 0).sum()
    np.testing.assert_array_equal(answers.matrix(8, 3), matrix)


@pytest.mark.parametrize(
    ("matrix", "classes", "message"),
    [
        (np.array([[0, 1], [0, 5]]), 3, r"Item 1, rater 1: label 5 lies outside the 3 classes"),
        (np.array([[0, -2]]), None, r"Item 0, rater 1: label -2 lies outside"),
        (np.zeros((2, 2)), None, r"must be a table \(items, raters\) of whole numbers, not float64"),
        (np.zeros(3, int), None, r"of shape \(3,\)"),
    ],
)
def test_mistakes_in_a_matrix(matrix, classes, message):
    with pytest.raises(InputError, match=message):
        answers_from_matrix(matrix, classes)


def test_nobody_answered_anything():
    answers, n_classes = answers_from_matrix(np.full((2, 2), -1), None)
    assert (len(answers), n_classes) == (0, 1)


def test_class_names_are_sorted_numbers_by_value():
    _, _, _, classes = answers_from_frame(_frame(["a", "r", 10], ["b", "r", 9], ["c", "r", "x"]), None, "error")
    assert classes == ("9", "10", "x")
    _, _, _, classes = answers_from_frame(_frame(["a", "r", 2.0], ["b", "r", 1.0]), None, "error")
    assert classes == ("1", "2")


def test_items_may_be_given_in_an_order_and_unanswered():
    answers, items, _, _ = answers_from_frame(_frame(["b", "r", 0], ["a", "r", 1]), None, "error", ["a", "b", "c"])
    assert items == ("a", "b", "c")
    np.testing.assert_array_equal(answers.item, [0, 1])
    np.testing.assert_array_equal(answers.label, [1, 0])
    with pytest.raises(InputError, match="Unknown items in the label table, 1 of 1: b"):
        answers_from_frame(_frame(["b", "r", 0]), None, "error", ["a"])


def test_repeated_rows_are_one_answer_and_contradictions_are_listed():
    rows = _frame(["a", "ann", "cat"], ["b", "ann", "cat"], ["a", "ann", "cat"], ["b", "ann", "dog"])
    with pytest.raises(InputError, match=r"different labels: b by ann \(cat and dog\)\. .*duplicates='keep-last'"):
        answers_from_frame(rows, None, "error")
    answers, _, _, classes = answers_from_frame(rows, None, "keep-last")
    assert [classes[label] for label in answers.label] == ["cat", "dog"]
    answers, _, _, _ = answers_from_frame(rows.iloc[:3], None, "error")
    assert len(answers) == 2


def test_many_contradictions_are_cut():
    rows = [[item, "ann", label] for item in range(15) for label in (0, 1)]
    with pytest.raises(InputError, match="and 5 more"):
        answers_from_frame(_frame(*rows), None, "error")


@pytest.mark.parametrize(
    ("frame", "classes", "message"),
    [
        (pd.DataFrame({"item": [1], "label": [0]}), None, r"no 'rater' \(nor worker, annotator\) among item, label"),
        (_frame(["a", "r", 0], [None, "r", 0]), None, "Row 1 of the label table has no item"),
        (_frame(["a", None, 0]), None, "Row 0 of the label table has no rater"),
        (_frame(["a", "r", np.nan]), None, "Row 0 of the label table has no label"),
        (
            _frame(["a", "r", "cat"], ["b", "r", "cow"]),
            ["cat", "dog"],
            "Row 1 of the label table: label 'cow' is not among",
        ),
        (_frame(["a", "r", "cat"]), ["cat", "cat"], "Each class needs a name of its own"),
    ],
)
def test_mistakes_in_a_frame(frame, classes, message):
    with pytest.raises(InputError, match=message):
        answers_from_frame(frame, classes, "error")


def test_too_many_classes_are_refused_before_they_overflow():
    with pytest.raises(InputError, match="classes are too many"):
        name_classes(str(number) for number in range(MAX_TABLE_CLASSES + 1))
    labels = np.arange(MAX_TABLE_CLASSES + 5)
    with pytest.raises(InputError, match="classes are too many"):
        answers_from_frame(pd.DataFrame({"item": labels, "rater": "r", "label": labels}), None, "error")
