"""Mechanical Turk: one answer or several on a page, boxes, Amazon's own form elements, rejected work."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.io import check, find_source, import_source


def write(path: Path, **columns: list[object]) -> Path:
    frame = pd.DataFrame({name.replace("__", "."): values for name, values in columns.items()})
    frame.to_csv(path, index=False)
    return path


def answers(annotations: at.Annotations) -> dict[tuple[str, str], str]:
    said = annotations.answers
    return {
        (annotations.items[i], annotations.raters[r]): annotations.classes[c]
        for i, r, c in zip(said.item, said.rater, said.label)
    }


def test_answers_with_their_times(example_mturk: Path, tmp_path: Path) -> None:
    imported = import_source(example_mturk, tmp_path / "out")
    assert imported.raters == {"W1": 2, "W2": 2}
    assert imported.notes == ["The item is Input.image_url, the label Answer.category."]
    table = pd.read_csv(tmp_path / "out" / "labels.csv")
    assert table["seconds"].tolist() == [9, 7, 5, 6]
    assert table["started"][0] == "Mon Jan 06 10:00:00 PST 2020"
    assert answers(at.load(tmp_path / "out")) == answers(at.load(example_mturk))
    assert answers(at.load(example_mturk))["http://x/1.jpg", "W2"] == "dog"


def test_rejected_work_is_left_out(tmp_path: Path) -> None:
    path = write(
        tmp_path / "b.csv", HITId=["H1", "H1"], WorkerID=["W1", "W2"], AssignmentStatus=["Approved", "Rejected"],
        Answer__x=["a", "b"],
    )  # fmt: skip
    assert at.load(path).raters == ("W1",)
    assert "1 answers are left out: their assignments were rejected." in [each.message for each in check(path)]


def test_ticked_boxes_are_one_question(tmp_path: Path) -> None:
    path = write(
        tmp_path / "b.csv", HITId=["H1", "H2", "H3"], WorkerId=["W1"] * 3,
        **{"Answer.kind.cat": ["true", "false", "true"], "Answer.kind.dog": ["false", "true", "true"]},
    )  # fmt: skip
    assert answers(at.load(path)) == {("H1", "W1"): "cat", ("H2", "W1"): "dog"}


@pytest.mark.parametrize(
    ("said", "label"),
    [([{"category": {"label": "Cat"}}], "Cat"), ([{"yes": True}], "yes"),
     ([{"kind": {"cat": False, "dog": True}}], "dog"), ([{"label": "Cat", "comment": "x"}], "Cat"),
     ({"grade": 3}, "3")],
)  # fmt: skip
def test_amazons_own_form_elements(tmp_path: Path, said: object, label: str) -> None:
    path = write(tmp_path / "b.csv", HITId=["H1"], WorkerId=["W1"], **{"Answer.taskAnswers": [json.dumps(said)]})
    assert answers(at.load(path)) == {("H1", "W1"): label}


def test_several_items_on_a_page(tmp_path: Path) -> None:
    path = write(
        tmp_path / "b.csv", HITId=["H1", "H1"], WorkerId=["W1", "W2"], Input__img1=["a", "a"], Input__img2=["b", "b"],
        Answer__cls1=["x", "y"], Answer__cls2=["y", "y"],
    )  # fmt: skip
    assert answers(at.load(path)) == {("a", "W1"): "x", ("a", "W2"): "y", ("b", "W1"): "y", ("b", "W2"): "y"}


def test_of_several_questions_or_inputs_one_must_be_named(tmp_path: Path) -> None:
    path = write(
        tmp_path / "b.csv", WorkerId=["W1", "W1"], Input__img=["a", "b"], Input__name=["c", "d"],
        Answer__one=["x", "y"], Answer__two=["z", "z"],
    )  # fmt: skip
    assert find_source(path).key == "mturk"
    with pytest.raises(InputError, match=r"several answers, Answer.one, Answer.two. Say which.*--label Answer.one"):
        at.load(path)
    with pytest.raises(InputError, match=r"several columns may name the item, Input\.img, Input\.name"):
        at.load(path, label="one")
    assert answers(at.load(path, label="one", item="img")) == {("a", "W1"): "x", ("b", "W1"): "y"}
    with pytest.raises(InputError, match="no answer 'three'"):
        at.load(path, label="three", item="img")
    with pytest.raises(InputError, match="no column"):
        at.load(path, label="one", item="nothing")
