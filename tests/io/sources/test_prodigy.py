"""Prodigy: yes or no, and choices."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import annotruth as at
from annotruth.errors import InputError
from annotruth.io import check, import_source


def test_yes_and_no(example_prodigy: Path, tmp_path: Path) -> None:
    imported = import_source(example_prodigy, tmp_path / "out")
    assert imported.raters == {"films-ann": 2, "films-bob": 2}
    loaded = at.load(tmp_path / "out")
    assert loaded.classes == ("POSITIVE", "not POSITIVE")
    np.testing.assert_array_equal(loaded.answer_matrix(), [[0, 1], [1, 1]])
    assert "2020-09-13T12:26:40" in (tmp_path / "out" / "labels.csv").read_text()


def choice(picture: str, accept: list[str], who: str, answer: str = "accept") -> str:
    options = [{"id": "cat", "text": "Cat"}, {"id": "dog", "text": "Dog"}]
    task = {"image": f"http://x/{picture}", "options": options, "accept": accept, "answer": answer, "_task_hash": 1}
    return json.dumps(task | {"_session_id": who}) + "\n"


def test_choices_of_which_one_was_made(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text(
        choice("1.jpg", ["cat"], "ann")
        + choice("1.jpg", ["dog"], "bob")
        + choice("2.jpg", ["cat", "dog"], "ann")
        + choice("2.jpg", ["cat"], "bob", "ignore")
    )
    loaded = at.load(path)
    assert (loaded.items, loaded.classes, loaded.raters) == (("1.jpg",), ("cat", "dog"), ("ann", "bob"))
    assert [problem.message for problem in check(path)] == [
        "1 answers are left out: the rater skipped them.",
        "1 answers are left out: they name no label, or several at once.",
    ]


def test_spans_alone_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps({"text": "a", "spans": [], "answer": "accept", "_task_hash": 2, "_session_id": "x"}))
    with pytest.raises(InputError, match="no answer chooses one label"):
        at.load(path)
